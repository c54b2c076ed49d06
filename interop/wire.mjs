// What the programs here share: a test writes one JSON object a line on stdin
// ({id, do, with}) and reads answers ({id, value} or {id, error}) and events
// ({event, value}) on stdout. The end of stdin is the end of the program.
import { createInterface } from "node:readline";

export const emit = (event, value = {}) => process.stdout.write(JSON.stringify({ event, value }) + "\n");

// Errors are told field by field: their fields are what is judged.
export function plain(e) {
  const out = { name: e?.constructor?.name ?? "", message: String(e?.message ?? e) };
  for (const [k, v] of Object.entries(e ?? {})) {
    try {
      out[k] = JSON.parse(JSON.stringify(v));
    } catch {
      out[k] = String(v);
    }
  }
  return out;
}

// Calls run side by side, as their lines come.
export function serve(acts) {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => {
    const call = JSON.parse(line);
    const answer = { id: call.id };
    try {
      if (!acts[call.do]) throw new Error(`this program cannot ${call.do}`);
      const got = await acts[call.do](call.with ?? {});
      answer.value = got && typeof got === "object" && !Array.isArray(got) ? got : { result: got ?? null };
    } catch (e) {
      answer.error = plain(e);
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  });
  lines.on("close", () => process.exit(0));
  process.on("unhandledRejection", (e) => emit("unhandled", plain(e)));
  emit("up");
}
