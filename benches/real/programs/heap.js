// SPDX-License-Identifier: MIT OR Apache-2.0
// Many small objects, used in a random order.
const COUNT = 1500000;
const objects = [];
for (let i = 0; i < COUNT; i++)
  objects.push({ value: i, parts: [i] });
let random = 12345;
let sum = 0;
for (let i = 0; i < 6000000; i++) {
  random = (Math.imul(random, 1103515245) + 12345) >>> 0;
  const object = objects[random % COUNT];
  sum += object.value + object.parts[0];
}
console.log(sum);
