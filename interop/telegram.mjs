// grammY as the tests tell it. Bots are made by name; each tells of the updates
// it gets, in order.
import http from "node:http";
import { Bot, InlineKeyboard, InputFile, webhookCallback } from "grammy";
import { emit, plain, serve } from "./wire.mjs";

const bots = new Map();
const held = new Map(); // bots whose handlers wait, by name
let hook;

function make({ name, url, token }) {
  const bot = new Bot(token, { client: { apiRoot: url } });
  bot.use(async (ctx) => {
    const kind = Object.keys(ctx.update).find((k) => k !== "update_id");
    emit("update", { bot: name, id: ctx.update.update_id, kind, body: ctx.update[kind], text: ctx.msg?.text ?? null,
      entities: (ctx.msg?.text ? ctx.entities() : []).map((e) => ({ type: e.type, text: e.text })) });
    await held.get(name)?.promise;
  });
  bot.catch((e) => emit("caught", plain(e.error)));
  bots.set(name, bot);
}

serve({
  make,
  // Any method, as grammY sends it; with is its payload.
  call: ({ bot = "a", method, payload }) => bots.get(bot).api.raw[method](...(payload ? [payload] : [])),
  init: async ({ bot = "a" }) => {
    await bots.get(bot).init();
    return bots.get(bot).botInfo;
  },
  // Polls until it is stopped; how it ends is an event.
  start({ bot = "a", kinds }) {
    bots.get(bot).start({ allowed_updates: kinds, onStart: () => emit("polling", { bot }) }).then(
      () => emit("stopped", { bot }),
      (e) => emit("ended", { bot, ...plain(e) }),
    );
  },
  stop: async ({ bot = "a" }) => bots.get(bot).stop(),
  hold({ bot = "a" }) {
    let release;
    const promise = new Promise((r) => (release = r));
    held.set(bot, { promise, release });
  },
  release({ bot = "a" }) {
    held.get(bot)?.release();
    held.delete(bot);
  },
  sendButtons: ({ chat }) => bots.get("a").api.sendMessage(chat, "May I?", {
    reply_markup: new InlineKeyboard().text("Yes", "yes:1").text("No", "no:1").row().url("Why", "https://example.com/why") }),
  upload: ({ chat, method, name, text, caption, caption_entities }) => {
    const kind = method.slice(4).toLowerCase();
    return bots.get("a").api.raw[method]({ chat_id: chat, caption, caption_entities, [kind]: new InputFile(Buffer.from(text, "base64"), name) });
  },
  async download({ url, token, file_id }) {
    const file = await bots.get("a").api.getFile(file_id);
    const got = await fetch(`${url}/file/bot${token}/${file.file_path}`);
    return { file, status: got.status, text: await got.text() };
  },
  // A server of its own that takes what the API pushes.
  hook({ bot = "a", secret }) {
    const take = webhookCallback(bots.get(bot), "http", { secretToken: secret });
    hook = http.createServer((req, res) => take(req, res).catch((e) => {
      emit("caught", plain(e));
      res.writeHead(500).end();
    }));
    return new Promise((up) => hook.listen(0, "127.0.0.1", () => up({ url: `http://127.0.0.1:${hook.address().port}` })));
  },
});
