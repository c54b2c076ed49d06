// discord.js as the tests tell it. Clients are made by name; each tells of what
// its gateway brings, in order.
import { Client, GatewayIntentBits as I, MessageFlags, Partials, RESTEvents } from "discord.js";
import { emit, plain, serve } from "./wire.mjs";

const clients = new Map();
const asked = new Map(); // interactions by token

const shown = (m) => ({
  id: m.id, channel: m.channelId, guild: m.guildId, content: m.content, type: m.type, nonce: m.nonce ?? null,
  author: m.author && { id: m.author.id, name: m.author.username, bot: m.author.bot, tag: m.author.tag },
  mentions: [...m.mentions.users.keys()], reference: m.reference?.messageId ?? null, edited: m.editedTimestamp,
  reactions: [...m.reactions.cache.values()].map((r) => [r.emoji.name, r.count, r.me]), flags: m.flags.bitfield,
  buttons: m.components.flatMap((row) => (row.components ?? []).map((b) => b.customId)),
  files: [...m.attachments.values()].map((a) => ({ name: a.name, url: a.url, size: a.size, type: a.contentType })),
  thread: m.hasThread, system: m.system,
});
const place = (c) => ({
  id: c.id, type: c.type, name: c.name ?? null, parent: c.parentId ?? null, archived: c.archived ?? null, locked: c.locked ?? null,
  archivedAt: c.archiveTimestamp ?? null, autoArchive: c.autoArchiveDuration ?? null, recipient: c.recipientId ?? null,
});

function open({ name, url, rest, intents }) {
  const client = new Client({
    intents: intents ?? [I.Guilds, I.GuildMessages, I.MessageContent, I.DirectMessages, I.GuildMessageReactions, I.DirectMessageReactions],
    partials: [Partials.Channel, Partials.Message, Partials.Reaction, Partials.User],
    allowedMentions: { parse: [] },
    enforceNonce: true,
    ws: { buildIdentifyThrottler: async () => ({ waitForIdentify: async () => {} }) }, // else 5 s between logins
    rest: { api: url + "/api", retries: 0, offset: 0, ...rest },
  });
  const tell = (event, value) => emit(event, { client: name, ...value });
  client.on("messageCreate", (m) => tell("message", shown(m)));
  client.on("messageUpdate", (_, m) => tell("edited", shown(m)));
  client.on("messageDelete", (m) => tell("deleted", { id: m.id }));
  client.on("messageDeleteBulk", (list) => tell("bulk", { ids: [...list.keys()] }));
  client.on("messageReactionAdd", (r, u) => tell("reaction", { emoji: r.emoji.name, user: u.id, message: r.message.id }));
  client.on("messageReactionRemove", (r, u) => tell("unreaction", { emoji: r.emoji.name, user: u.id, message: r.message.id }));
  client.on("threadCreate", (t, fresh) => tell("thread", { ...place(t), fresh }));
  client.on("threadUpdate", (_, t) => tell("threadchanged", place(t)));
  client.on("guildUnavailable", (g) => tell("outage", { id: g.id }));
  client.on("guildAvailable", (g) => tell("back", { id: g.id }));
  client.on("guildDelete", (g) => tell("kicked", { id: g.id }));
  client.on("shardResume", (_, replayed) => tell("resumed", { replayed }));
  client.on("shardReady", () => tell("ready"));
  client.on("shardDisconnect", (e) => tell("disconnected", { code: e.code }));
  client.on("shardReconnecting", () => tell("reconnecting"));
  client.on("shardError", (e) => tell("shardError", plain(e)));
  client.on("error", (e) => tell("error", plain(e)));
  client.on("raw", (p) => tell("raw", { t: p.t, s: p.s, d: p.d }));
  client.on("debug", (line) => {
    if (line.includes("Zombie connection")) tell("zombie");
    const ack = /Heartbeat acknowledged, latency of (\d+)ms/.exec(line);
    if (ack) tell("ack", { ms: Number(ack[1]) });
  });
  client.rest.on(RESTEvents.RateLimited, (d) => tell("limited", { global: d.global, scope: d.scope, limit: d.limit, retryAfter: d.retryAfter }));
  client.on("interactionCreate", (i) => {
    asked.set(i.token, i);
    tell("interaction", {
      token: i.token, type: i.type, command: i.commandName ?? null, custom: i.customId ?? null, values: i.values ?? null,
      text: i.isChatInputCommand() ? i.options.getString("text") : null, target: i.targetMessage?.content ?? null,
      user: i.user.id, member: i.member?.user?.id ?? null, channel: i.channelId, guild: i.guildId, on: i.message?.id ?? null,
      inGuild: i.inCachedGuild(), button: i.isButton(), select: i.isStringSelectMenu(),
    });
  });
  clients.set(name, client);
}

const of = (w) => clients.get(w.client ?? "a");
const channel = (w) => of(w).channels.fetch(w.channel);
const message = async (w) => (await channel(w)).messages.fetch(w.message);

serve({
  open,
  login: async (w) => {
    const c = of(w);
    await c.login(w.token);
    return { user: c.user?.id ?? null };
  },
  me: (w) => ({ id: of(w).user.id, name: of(w).user.username, bot: of(w).user.bot, app: of(w).application.id, guilds: [...of(w).guilds.cache.keys()],
    channels: [...of(w).channels.cache.values()].map(place) }),
  destroy: (w) => of(w).destroy(),
  async send(w) { return shown(await (await channel(w)).send(w.body)); },
  // Many at once: the client's own queue orders and paces them.
  async burst(w) {
    const c = await channel(w);
    return { ids: (await Promise.all(w.texts.map((content) => c.send({ content })))).map((m) => m.id) };
  },
  async reply(w) { return shown(await (await message(w)).reply(w.body)); },
  async edit(w) { return shown(await (await message(w)).edit(w.body)); },
  async delete(w) { await (await message(w)).delete(); },
  async react(w) { await (await message(w)).react(w.emoji); },
  async unreact(w) { await (await message(w)).reactions.resolve(w.emoji).users.remove(of(w).user.id); },
  async typing(w) { await (await channel(w)).sendTyping(); },
  // Past the cache: what REST says.
  async fetch(w) { return shown(await (await channel(w)).messages.fetch({ message: w.message, force: true })); },
  async history(w) { return { list: [...(await (await channel(w)).messages.fetch(w.query)).values()].map(shown) }; },
  async place(w) { return place(await of(w).channels.fetch(w.channel, { force: true })); },
  async thread(w) {
    if (w.message) return place(await (await message(w)).startThread({ name: w.name }));
    return place(await (await channel(w)).threads.create({ name: w.name, ...(w.body && { message: w.body }) }));
  },
  async archive(w) { return place(await (await channel(w)).setArchived(w.on)); },
  async dm(w) { return place(await of(w).users.createDM(w.user)); },
  async upload(w) { return shown(await (await channel(w)).send({ content: w.content, files: [{ name: w.name, attachment: Buffer.from(w.text) }] })); },
  async download(w) {
    const got = await fetch(w.url);
    return { status: got.status, text: await got.text() };
  },
  async commands(w) {
    const list = await of(w).application.commands.set(w.list);
    return { list: [...list.values()].map((c) => ({ id: c.id ?? null, name: c.name, type: c.type, app: c.applicationId ?? null })) };
  },
  // What the bot may do, as the client works it out of the guild.
  async may(w) {
    const c = await channel(w);
    return { send: c.permissionsFor(of(w).user)?.has("SendMessages") ?? null, me: c.guild.members.me?.id ?? null, everyone: c.guild.roles.everyone?.id ?? null };
  },
  async defer(w) { await asked.get(w.token).deferReply(w.private ? { flags: MessageFlags.Ephemeral } : {}); },
  async deferShown(w) { return shown((await asked.get(w.token).deferReply({ withResponse: true })).resource.message); },
  async answer(w) { await asked.get(w.token).reply(w.body); },
  async editAnswer(w) { return shown(await asked.get(w.token).editReply(w.body)); },
  async fetchAnswer(w) { return shown(await asked.get(w.token).fetchReply()); },
  async deleteAnswer(w) { await asked.get(w.token).deleteReply(); },
  async followUp(w) { return shown(await asked.get(w.token).followUp(w.body)); },
  async deferUpdate(w) { await asked.get(w.token).deferUpdate(); },
  async update(w) { await asked.get(w.token).update(w.body); },
  // The calls a client makes that judges the answers itself.
  raw: (w) => of(w).rest[w.method](w.path, { body: w.body, ...w.more }),
  gatewaySend: (w) => of(w).ws.broadcast(w.frame),
});
