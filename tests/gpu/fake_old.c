/*
 * fake_old.c: a libcuda.so.1 that lacks nearly all functions, as one that is too old does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
__attribute__((visibility("default"))) int cuGetErrorName(int result, const char **text);

int cuGetErrorName(int result, const char **text)
{
	*text = "none";
	return result;
}
