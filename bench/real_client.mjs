// A client of the TypeScript SDK, told what to do by lines of JSON: node real_client.mjs NODE_MODULES COMMAND ARGS...
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, command, ...args] = process.argv.slice(2);
const sdk = `${pathToFileURL(modules).href}/@modelcontextprotocol/sdk/dist/esm/client`;
const { Client } = await import(`${sdk}/index.js`);
const { StdioClientTransport } = await import(`${sdk}/stdio.js`);
const client = new Client({ name: "bench", version: "1" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));

for await (const line of createInterface({ input: process.stdin })) {
  const { name, arguments: given } = JSON.parse(line);
  let said;
  try {
    said = { value: name === undefined ? await client.listTools() : await client.callTool({ name, arguments: given }) };
  } catch (error) {
    said = { code: error.code, message: error.message, data: error.data };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
await client.close();
