// The page: which conversation is open, what keys and buttons do, when to read.

import { get, post, newChat, newID, Outbox, Stream } from '/api.js';
import { Model } from '/model.js';
import { words } from '/words.js';
import { h, tick, View } from '/view.js';
import { Composer } from '/compose.js';
import { Bar } from '/bar.js';
import { listenCopy } from '/copy.js';
import { Sessions } from '/sessions.js';

const $ = (id) => document.getElementById(id);
const log = $('log');

let model;
let outbox;
let stream;
let boot = '';
let reading = false;
let readAgain = false;
let framed = false;
let said = new Set(); // answers and replies told to a screen reader

const view = new View($('items'), {
  press: (button) => send('press', { id: newID(), button }),
  ask: (id) => ask('/why', id),
  redraw: () => draw(),
  home,
  edit: (entry) => composer.edit(entry),
  retry: (id) => outbox.retry(id),
  discard: (id) => outbox.discard(id),
});

const composer = new Composer($, {
  submit: (text) => send('messages', { id: newID(), text }),
  begin: () => openChat(''),
  amend: (id, text) => send('edit', { id, text, op: newID() }),
  stop,
  lastPending: () => model && model.lastPending(),
});

const sessions = new Sessions($, { open: openChat, current: () => (model ? model.chat : '') });

const bar = new Bar($, { endJob, home });

function send(kind, body, done) {
  outbox.put(kind, body, done);
  pinned = true;
  frame();
}

// ask gives the answer to a command that is shown where it was asked.
async function ask(text, about) {
  return (await post(`/api/sessions/${model.chat}/ask`, { id: newID(), text, reply_to: about })).text;
}

async function endJob(id) {
  bar.say(words.jobEnding(id));
  try {
    bar.say(await ask(`/jobs kill ${id}`));
  } catch (e) {
    bar.say(e.message);
  }
}

// setMode changes what a follow-up does. It keeps its place among messages that
// are not yet sent, and is no part of the conversation.
function setMode(mode) {
  if (composer.wanted === mode) return;
  composer.wanted = mode;
  outbox.put('ask', { id: newID(), text: `/busy ${mode}` }, (_, fault) => {
    if (fault) composer.wanted = '';
    bar.say(fault ? fault.message : words.modeSet[mode]);
  });
  frame();
}

// home is where the focus goes when what had it is gone: to the box, but not
// where that would raise a keyboard over half the screen.
function home() {
  (matchMedia('(pointer: coarse)').matches ? log : $('text')).focus({ preventScroll: true });
}

function stop() {
  const turn = model && model.running();
  if (turn) send('press', { id: newID(), button: `stop:${turn}@` }); // @: of the session shown here
  return Boolean(turn);
}

// openChat shows a conversation; '' begins a new one.
function openChat(chat) {
  chat = /^[a-z0-9-]{6,40}$/.test(chat || '') ? chat : newChat();
  if (model && model.chat === chat) return;
  if (stream) stream.close();
  if (outbox) outbox.close();
  sessionStorage.setItem('chat', chat);
  if (location.hash !== `#${chat}`) history.pushState(null, '', `#${chat}`);
  model = new Model(chat);
  said = new Set();
  pinned = true;
  boot = '';
  reading = readAgain = false;
  outbox = new Outbox(chat, { changed: changed(model), login });
  composer.open(chat);
  $('items').replaceChildren();
  view.lives.clear();
  bar.say('');
  stream = new Stream(chat, handlers(model));
  read(model);
  outbox.pump();
  frame();
}

const changed = (m) => () => {
  if (m !== model) return;
  read(m);
  frame();
};

function handlers(m) {
  const mine = (f) => (v) => {
    if (m === model) f(v);
  };
  return {
    up: mine(() => {
      banner('');
      m.lostAt = 0;
      frame();
    }),
    down: mine(() => {
      banner(words.offline);
      m.lostAt = m.lostAt || Date.now();
      frame();
    }),
    hello: mine((v) => {
      if (boot && boot !== v.boot && m.running()) banner(words.restarted, 4000);
      boot = v.boot;
      outbox.hurry();
    }),
    state: mine((s) => {
      m.applyState(s);
      frame();
    }),
    rows: mine(() => read(m)),
    fate: mine((f) => {
      m.putFate(f);
      frame();
    }),
    reply: mine((it) => {
      m.putReply(it);
      frame();
    }),
  };
}

// read asks for what is new; a hint that comes meanwhile asks once more.
async function read(m) {
  if (reading) {
    readAgain = true;
    return;
  }
  reading = true;
  const at = Date.now();
  const fresh = !m.loaded;
  try {
    const t = await get(`/api/sessions/${m.chat}?cursor=${encodeURIComponent(m.cursor)}`);
    if (m !== model) return;
    m.applyTranscript(t, at);
    outbox.seen((id) => shows(m, id));
    if (fresh) hush(m);
    frame();
  } catch (e) {
    if (m !== model) return;
    if (e.status === 401) login();
    else setTimeout(() => m === model && read(m), 2000);
  } finally {
    if (m === model) {
      reading = false;
      if (readAgain) {
        readAgain = false;
        read(m);
      }
    }
  }
}

function shows(m, id) {
  return m.memo.has(`said:${id}`) || m.slot.some((e) => (e.input.ids || []).includes(id)) ||
    m.rows.some((r) => (r.inputs || []).some((i) => (i.ids || []).includes(id)));
}

// frame draws once a frame, however much came in.
function frame() {
  if (framed) return;
  framed = true;
  const run = () => {
    framed = false;
    draw();
  };
  if (document.hidden) setTimeout(run, 200);
  else requestAnimationFrame(run);
}

let pinned = true; // the newest is in sight and stays so

function draw() {
  if (!model) return;
  const blocks = model.blocks(outbox.list);
  if (!blocks.length && model.loaded) {
    $('items').replaceChildren(h('div', { class: 'empty' }, h('p', {}, words.empty), h('p', {}, words.emptyHint)));
  } else {
    view.render(blocks, model);
  }
  list();
  bar.draw(model, composer);
  tell();
  if (pinned) log.scrollTop = log.scrollHeight;
  bar.hide($('down'), pinned);
}

let listed = ''; // what of this conversation its place in the list shows
function list() {
  const now = `${model.chat} ${model.title} ${model.turn} ${model.slot.length}`;
  if (!model.loaded || now === listed) return;
  listed = now;
  sessions.refresh();
}

// tell reads answers and replies out, once each and when they are whole.
function tell() {
  if (!model.loaded) return;
  for (const [key, text] of spoken(model)) {
    if (said.has(key)) continue;
    said.add(key);
    $('say').replaceChildren(h('p', {}, text.slice(0, 2000)));
  }
}

function* spoken(m) {
  for (const r of m.rows) if (r.end) yield [`a${r.turn}.${r.seq}`, r.text || r.end];
  for (const it of m.memo.values()) if (it.kind === 'reply' || it.kind === 'notice') yield [`r${it.id}`, it.text || ''];
}

// hush takes what was there when the page came as read.
function hush(m) {
  for (const [key] of spoken(m)) said.add(key);
}

let bannerTimer;
function banner(text, ms) {
  clearTimeout(bannerTimer);
  $('banner').textContent = text;
  $('banner').hidden = !text;
  if (ms) bannerTimer = setTimeout(() => banner(''), ms);
}

function login() {
  if (!$('login').open) $('login').showModal();
}

$('login').addEventListener('cancel', (e) => e.preventDefault());
$('loginform').addEventListener('submit', async (e) => {
  e.preventDefault();
  $('loginfault').textContent = '';
  try {
    await post('/api/login', { token: $('token').value });
    $('token').value = '';
    $('login').close();
    start();
  } catch (fault) {
    $('loginfault').textContent = fault.message;
  }
});

// With a finger or the mouse the next thing is to write on; with the arrow keys
// it may be to choose on.
let pointed = false;
$('mode').addEventListener('pointerdown', () => { pointed = true; });
$('mode').addEventListener('keydown', () => { pointed = false; });
for (const r of document.querySelectorAll('#mode input')) {
  r.addEventListener('change', () => setMode(r.value));
  r.addEventListener('click', () => pointed && home());
}
listenCopy(document.body, (text) => bar.say(text));
$('stop').addEventListener('click', stop);
$('waiting').addEventListener('click', () => {
  const first = document.querySelector('.wait');
  if (first) first.scrollIntoView({ block: 'center' });
});
$('down').addEventListener('click', () => {
  pinned = true;
  draw();
});
log.addEventListener('scroll', () => {
  pinned = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  bar.hide($('down'), pinned);
});
new ResizeObserver(() => {
  if (pinned) log.scrollTop = log.scrollHeight;
}).observe(log);
for (const b of document.querySelectorAll('[data-new]')) {
  b.addEventListener('click', () => {
    sessions.hide();
    openChat('');
    $('text').focus();
  });
}
$('menu').addEventListener('click', () => sessions.show());

$('help').addEventListener('click', () => bar.showKeys());

const modes = ['steer', 'queue', 'interrupt'];

document.addEventListener('keydown', (e) => {
  const typing = e.target instanceof HTMLTextAreaElement || (e.target instanceof HTMLInputElement && e.target.type !== 'radio');
  const ctrl = (e.ctrlKey || e.metaKey) && !e.altKey;
  const does = () => e.preventDefault();
  if (document.querySelector('dialog[open]')) {
    if (ctrl && e.key.toLowerCase() === 'k') does();
  } else if (ctrl && e.key.toLowerCase() === 'k') {
    does();
    sessions.show();
  } else if (ctrl && e.shiftKey && e.key.toLowerCase() === 'o') {
    does();
    openChat('');
    home();
  } else if ((ctrl && e.key === '/') || (e.key === '?' && !typing && !ctrl)) {
    does();
    bar.showKeys();
  } else if (e.altKey && !e.ctrlKey && !e.metaKey && /^Digit[123]$/.test(e.code)) {
    does();
    setMode(modes[Number(e.code[5]) - 1]);
  } else if (e.key === 'Escape' && !e.defaultPrevented) {
    // What is open is closed first. With a draft in the box Esc is a slip of
    // the hand, not a stop.
    if (view.close() || (!$('text').value.trim() && stop())) does();
  } else if (e.key === '/' && !typing && !ctrl) {
    does();
    composer.slash();
  }
});
window.addEventListener('hashchange', () => openChat(location.hash.slice(1)));
window.addEventListener('popstate', () => openChat(location.hash.slice(1)));
window.addEventListener('online', () => stream && stream.open());

// A page nobody looks at gives its connection back when nothing runs: browsers
// allow six to one host. It reads again when it is looked at.
let hiddenTimer;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiddenTimer);
  if (!stream) return;
  if (document.hidden) {
    hiddenTimer = setInterval(() => {
      if (!model.running() && !outbox.list.some((o) => !o.sent)) stream.close();
    }, 60000);
  } else if (stream.closed) {
    stream.open();
  } else {
    read(model);
  }
});

setInterval(() => {
  if (!model || document.hidden) return;
  tick(document.body, model.now());
}, 500);

// A turn that another replica runs shows nothing live here: then rows are read
// now and then.
setInterval(() => {
  if (model && (model.turn || model.jobs.length) && !document.hidden && Date.now() - (model.live.heard || 0) > 5000) read(model);
}, 5000);

async function start() {
  try {
    const list = await sessions.refresh(true);
    composer.commands = await get('/api/commands');
    const last = sessionStorage.getItem('chat');
    if (model) {
      stream.open();
      read(model);
      outbox.hurry();
    } else {
      openChat(location.hash.slice(1) || last || (list[0] && list[0].chat) || '');
    }
  } catch (e) {
    if (e.status === 401) return login();
    banner(words.offline);
    setTimeout(start, 2000);
  }
}

start();
$('text').focus();
