// Drives a server with the official TypeScript client, 1.x or 2.x, and prints one JSON report, of the
// same shape as that of `sdk_client.py`.
//
// Usage: ts_client.cjs FOLDER 1|2 MODE URL
// FOLDER: where the packages are. MODE: legacy, and with 2 also auto or a modern revision.
'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');

const [folder, version, mode, url] = process.argv.slice(2);
const load = createRequire(path.join(folder, 'package.json'));
const one = version === '1';
const NOTICE_TIMEOUT = 5000; // milliseconds for the server to notice that a call was cancelled

const report = { progress: [], logs: [], updates: [], steps: [] };

function parts() {
  if (!one) return load('@modelcontextprotocol/client');
  return {
    ...load('@modelcontextprotocol/sdk/client/index.js'),
    ...load('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    ...load('@modelcontextprotocol/sdk/client/sse.js'),
    ...load('@modelcontextprotocol/sdk/types.js'),
  };
}

const sdk = parts();

function transport() {
  const Kind = url.endsWith('/sse') ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
  return new Kind(new URL(url));
}

function makeClient() {
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const options = { capabilities };
  if (!one) {
    options.versionNegotiation = { mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } };
  }
  const client = new sdk.Client({ name: 'ts', version: '1' }, options);
  const answers = {
    'elicitation/create': (request) => ({
      action: 'accept',
      content: { name: request.params.message, age: 7 },
    }),
    'sampling/createMessage': () => ({
      role: 'assistant',
      model: 'tiny',
      content: { type: 'text', text: 'because' },
    }),
    'roots/list': () => ({ roots: [{ uri: 'file:///srv/data' }] }),
  };
  const schemas = one && {
    'elicitation/create': sdk.ElicitRequestSchema,
    'sampling/createMessage': sdk.CreateMessageRequestSchema,
    'roots/list': sdk.ListRootsRequestSchema,
  };
  for (const [method, answer] of Object.entries(answers)) {
    client.setRequestHandler(one ? schemas[method] : method, async (request) => answer(request));
  }
  const log = one ? sdk.LoggingMessageNotificationSchema : 'notifications/message';
  client.setNotificationHandler(log, (note) => {
    report.logs.push([note.params.level, note.params.data]);
  });
  const updated = one ? sdk.ResourceUpdatedNotificationSchema : 'notifications/resources/updated';
  client.setNotificationHandler(updated, (note) => {
    report.updates.push(note.params.uri);
  });
  return client;
}

const client = makeClient();
const carrier = transport();

function call(name, args = {}, options = {}) {
  const params = { name, arguments: args };
  if (modern()) params._meta = { 'io.modelcontextprotocol/logLevel': 'info' };
  return one ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

function modern() {
  return report.protocol_version > '2026';
}

function texts(result) {
  return result.content.filter((item) => item.type === 'text').map((item) => item.text);
}

function summary(result) {
  return {
    texts: texts(result),
    structured: result.structuredContent ?? null,
    is_error: result.isError ?? false,
  };
}

async function codeOf(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return error.code;
  }
}

function soon(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function eventually(probe) {
  const deadline = Date.now() + NOTICE_TIMEOUT;
  while (!(await probe())) {
    if (Date.now() > deadline) return false;
    await soon(10);
  }
  return true;
}

async function connect() {
  await client.connect(carrier);
  report.protocol_version =
    (one ? undefined : client.getNegotiatedProtocolVersion()) ??
    carrier.protocolVersion ??
    carrier._protocolVersion;
  report.server = client.getServerVersion()?.name ?? null;
}

async function tools() {
  const listed = (await client.listTools()).tools;
  report.tools = Object.fromEntries(listed.map((tool) => [tool.name, tool]));
  report.echo = summary(await call('echo', { text: 'grüße \u2028 🎈' }));
  report.add = summary(await call('add', { a: 2, b: 3 }));
  report.point = summary(await call('point', { x: 1, y: -1 }));
  report.fail = summary(await call('fail', { message: 'no luck' }));
  report.noisy = summary(await call('noisy', { lines: 300 }));
  report.bad_arguments = summary(await call('add', { a: 'one', b: 2 }));
  const picture = (await call('picture')).content[0];
  report.picture = [picture.mimeType, Buffer.from(picture.data, 'base64').toString('hex')];
  const onprogress = (told) => report.progress.push([told.progress, told.total, told.message]);
  await call('count', { steps: 3 }, { onprogress });
  await call('chatter');
  report.survey = summary(await call('survey'));
}

async function unknown() {
  report.unknown_tool = await codeOf(call('nope'));
  report.unknown_resource = await codeOf(client.readResource({ uri: 'peer://nope' }));
  report.unknown_prompt = await codeOf(client.getPrompt({ name: 'nope', arguments: {} }));
  report.missing_argument = await codeOf(client.getPrompt({ name: 'greet', arguments: {} }));
}

async function read(uri) {
  return (await client.readResource({ uri })).contents[0];
}

async function reads() {
  report.resources = (await client.listResources()).resources.map((found) => found.uri).sort();
  const templates = (await client.listResourceTemplates()).resourceTemplates;
  report.templates = templates.map((found) => found.uriTemplate);
  report.motd = (await read('peer://motd')).text;
  report.item = (await read('peer://items/7')).text;
  report.blob = Buffer.from((await read('peer://blob')).blob, 'base64').toString('hex');
  report.prompts = (await client.listPrompts()).prompts.map((found) => found.name);
  const message = (await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } })).messages[0];
  report.prompt = [message.role, message.content.text];
}

async function updates() {
  const uri = 'peer://motd';
  let heard;
  if (modern()) heard = await client.listen({ resourceSubscriptions: [uri] });
  else await client.subscribeResource({ uri });
  await call('touch', { uri });
  await eventually(() => report.updates.length > 0);
  if (heard) await heard.close();
}

async function sentAway() {
  const onprogress = (told) => report.steps.push(told.progress);
  report.stepped = texts(await call('slow_steps', {}, { onprogress }));
}

async function sideBySide() {
  const begun = Date.now();
  await Promise.all(Array.from({ length: 8 }, () => call('sleep', { ms: 200 })));
  report.side_by_side = (Date.now() - begun) / 1000;
}

async function cancels() {
  return Number(texts(await call('cancelled_count'))[0]);
}

async function cancel() {
  const before = await cancels();
  const abort = new AbortController();
  const hanging = call('hang', {}, { signal: abort.signal, onprogress: () => abort.abort('enough') });
  await codeOf(hanging);
  report.cancelled = await eventually(async () => (await cancels()) === before + 1);
}

async function main() {
  await connect();
  if (!modern()) {
    await client.ping();
    report.set_level = await codeOf(client.setLoggingLevel('info'));
  }
  for (const part of [tools, unknown, reads, updates, sentAway, sideBySide, cancel]) await part();
  if (carrier.terminateSession && !modern()) await carrier.terminateSession();
  await client.close();
  console.log(JSON.stringify(report));
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
