// node rp2040.cjs RP2040JS FIRMWARE.bin: begins where the boot ROM does, at the first 252 bytes of the flash, in RAM.
// UART0 is the standard input and output.
const fs = require('fs');
const { Simulator } = require(process.argv[2]);
const { rp2040: mcu, clock } = new Simulator();
const { core } = mcu;
mcu.flash.fill(0xff).set(fs.readFileSync(process.argv[3]));
const RAM = 0x20041f00;
mcu.flash.slice(0, 252).forEach((byte, at) => mcu.writeUint8(RAM + at, byte));
core.SP = RAM;
core.PC = RAM;
let waiting = [];
const said = [];
mcu.uart[0].onByte = (byte) => said.push(byte);
process.stdin.on('data', (bytes) => waiting.push(...bytes));
process.stdin.on('end', () => process.exit());
function run() {
  for (let n = 0; n < 200000; n++) {
    if (waiting.length && (n & 63) === 0 && mcu.uart[0].rxFIFO.empty) mcu.uart[0].feedByte(waiting.shift());
    clock.tick(core.executeInstruction() * (1e9 / mcu.clkSys));
  }
  if (said.length) process.stdout.write(Buffer.from(said.splice(0)));
  setImmediate(run);
}
run();
