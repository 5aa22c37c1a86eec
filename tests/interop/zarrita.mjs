// zarrita.mjs FOLDER: writes arrays of 23 x 17 elements by zarrita, one for each codec that it can
// encode.  Element i, in C order, is i * 37 % 200 - 100.
// SPDX-License-Identifier: Apache-2.0
import { FileSystemStore } from "@zarrita/storage";
import * as zarr from "zarrita";

const root = zarr.root(new FileSystemStore(process.argv[2]));
const little = { name: "bytes", configuration: { endian: "little" } };

async function put(name, dtype, Type, codecs) {
  const array = await zarr.create(root.resolve(`/${name}`), {
    shape: [23, 17], chunkShape: [10, 6], dtype, codecs, fillValue: 0,
  });
  const data = Type.from({ length: 23 * 17 }, (_, i) => ((i * 37) % 200) - 100);
  await zarr.set(array, null, { data, shape: [23, 17], stride: [17, 1] });
}

await put("int16", "int16", Int16Array, [little]);
await put("float64", "float64", Float64Array, [little]);
await put("zstd", "int32", Int32Array, [little, { name: "zstd", configuration: { level: 3 } }]);
await put("lz4", "int32", Int32Array, [little, { name: "numcodecs.lz4", configuration: {} }]);
await put("blosc", "float32", Float32Array, [little, {
  name: "blosc",
  configuration: { cname: "lz4", clevel: 5, shuffle: "shuffle", typesize: 4, blocksize: 0 },
}]);
await put("transpose", "int32", Int32Array, [
  { name: "transpose", configuration: { order: [1, 0] } }, little,
]);
await put("big", "int32", Int32Array, [{ name: "bytes", configuration: { endian: "big" } }]);
