// A planner no Go was written for: it sends one request in the structured
// and one in the binary form, waits for both results and reads them with the
// CloudEvents SDK. It prints one JSON line for each.
//
//   NATS_URL=nats://127.0.0.1:4222 NATS_TOKEN=... node planner.mjs PROJECT
import { randomUUID } from "node:crypto";
import { connect, headers } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";
import { CloudEvent, HTTP } from "cloudevents";

const project = process.argv[2];
const nc = await connect({ servers: process.env.NATS_URL, token: process.env.NATS_TOKEN || undefined });
const js = jetstream(nc);

function request(code) {
  return new CloudEvent({
    id: randomUUID(),
    source: "/planners/js",
    type: "dev.toolworker.request.v1",
    subject: "answer",
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    correlationid: "kön%ig 1",
    data: { project, inline: { name: "answer", source: "custom", code }, input: { a: 20, b: 22 } },
  });
}

// The NATS binding asks for percent-encoding of what is not printable ASCII.
const encode = (value) =>
  String(value).replace(/[^\x21\x23\x24\x26-\x7e]/gu, encodeURIComponent);

function message(event, form) {
  const { headers: fields, body } = HTTP[form](event);
  const h = headers();
  for (const [name, value] of Object.entries(fields)) {
    h.set(name, name.startsWith("ce-") ? encode(value) : value);
  }
  h.set("Nats-Msg-Id", `${project}/${event.id}`);
  return { payload: body, headers: h };
}

async function ask(form) {
  const event = request("print('sum')\nresult = input_data['a'] + input_data['b']");
  const answers = nc.subscribe(`tools.result.${project}.${event.id}`, { max: 1, timeout: 20_000 });
  const { payload, headers } = message(event, form);
  await js.publish(`tools.request.default.normal.${project}`, payload, { headers });
  for await (const m of answers) {
    const fields = {};
    for (const name of m.headers.keys()) fields[name.toLowerCase()] = m.headers.get(name);
    const result = HTTP.toEvent({ headers: fields, body: m.string() });
    result.validate();
    const { type, correlationid, causationid, data } = result;
    console.log(JSON.stringify({ form, request: event.id, type, correlationid, causationid, data }));
  }
}

await ask("structured");
await ask("binary");
await nc.drain();
