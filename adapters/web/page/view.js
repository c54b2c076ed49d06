// Puts blocks on the page. Every text goes in as a text node. Elements are
// kept by key and changed in place, so that what is folded open stays open,
// selected text stays selected, and only what changed moves.

import { copyButton, markdown } from '/markdown.js';
import { clock, stateText, span, words } from '/words.js';

// h makes an element: properties, then children; strings become text nodes.
export function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (k === 'class') el.className = v;
    else if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
    else if (k.startsWith('aria-') || k.startsWith('data-') || k === 'role') el.setAttribute(k, v);
    else el[k] = v;
  }
  el.append(...children.filter((c) => c !== null && c !== undefined && c !== false && c !== ''));
  return el;
}

// sync makes the children of parent those of list: [{key, sig, make, update}].
// An element whose sig changed is updated in place or made anew.
export function sync(parent, list) {
  const keys = new Set(list.map((it) => it.key));
  for (const el of [...parent.children]) if (!keys.has(el._key)) el.remove();
  const old = new Map([...parent.children].map((el) => [el._key, el]));
  let at = parent.firstElementChild;
  for (const it of list) {
    let el = old.get(it.key);
    if (el && el._sig !== it.sig) {
      if (it.update) {
        it.update(el);
      } else {
        const fresh = it.make();
        if (at === el) at = fresh;
        el.replaceWith(fresh);
        el = fresh;
      }
    } else if (!el) {
      el = it.make();
      if (it.update) it.update(el);
    }
    el._key = it.key;
    el._sig = it.sig;
    if (at === el) at = el.nextElementSibling;
    else parent.insertBefore(el, at);
  }
}

// patch makes the children of el those of fresh and leaves those that are equal
// as they are: a text that grows moves nothing above it.
function patch(el, fresh) {
  let at = el.firstChild;
  for (const node of [...fresh.childNodes]) {
    if (!at) {
      el.append(node);
      continue;
    }
    const old = at;
    at = at.nextSibling;
    if (!old.isEqualNode(node)) old.replaceWith(node);
  }
  while (at) {
    const old = at;
    at = at.nextSibling;
    old.remove();
  }
}

// stamp is a time of day that a message bears.
function stamp(ms) {
  if (!ms) return null;
  const t = new Date(ms);
  return h('time', { class: 'stamp', dateTime: t.toISOString(), title: t.toLocaleString() }, clock(ms));
}

// ticking is a time that goes on by itself: tick writes it.
const ticking = (since) => h('span', { class: 'took', 'data-since': String(since) });

export function tick(root, now) {
  for (const el of root.querySelectorAll('[data-since]')) {
    const text = span(now - Number(el.dataset.since));
    if (el.textContent !== text) el.textContent = text;
  }
}

export class View {
  // act is what buttons do: press, edit, ask, retry, discard, home.
  constructor(root, act) {
    this.root = root;
    this.act = act;
    this.lives = new Map(); // id of a message whose life is shown → what is known of it
  }

  render(blocks, model) {
    this.model = model;
    const back = this.grasp();
    sync(this.root, blocks.map((b) => this.block(b)));
    back();
    tick(this.root, model.now());
  }

  // grasp notes what has the focus and gives what brings it back after the
  // element was made anew or has gone: to the same button, else to the sign of
  // its message or of the next that waits, else home. Never to a button that
  // would do to one message what was meant for another.
  grasp() {
    const el = document.activeElement;
    if (!el || el === this.root || !this.root.contains(el)) return () => {};
    const item = [...this.root.children].find((c) => c.contains(el));
    const waits = [...this.root.querySelectorAll('.wait')];
    const place = waits.indexOf(item);
    return () => {
      if (el.isConnected) return;
      const again = [...this.root.children].find((c) => c._key === item._key);
      const next = this.root.querySelectorAll('.wait')[place];
      const to = (again && el.dataset.act && again.querySelector(`[data-act="${CSS.escape(el.dataset.act)}"]`)) ||
        (again && again.querySelector('.state')) || (place >= 0 && next && next.querySelector('.state'));
      if (to) to.focus({ preventScroll: true });
      else this.act.home();
    };
  }

  // ask shows what became of a message, below it; again hides it.
  async ask(id) {
    if (!id) return;
    if (this.lives.delete(id)) return this.act.redraw();
    const life = { text: words.asking };
    this.lives.set(id, life);
    this.act.redraw();
    try {
      life.text = await this.act.ask(id);
    } catch (e) {
      life.text = e.message;
    }
    this.act.redraw();
  }

  // close hides what ask showed and gives whether there was something.
  close() {
    const open = this.lives.size > 0;
    const id = [...this.lives.keys()].pop();
    this.lives.clear();
    if (open) {
      this.act.redraw();
      const sign = this.root.querySelector(`[data-act="${CSS.escape(`why:${id}`)}"]`);
      if (sign) sign.focus({ preventScroll: true });
    }
    return open;
  }

  block(b) {
    const id = (b.input && b.input.id) || (b.item && b.item.id) || (b.entry && b.entry.input.id);
    const sig = JSON.stringify(b) + this.lifeSig(id);
    const one = (make) => ({ key: b.key, sig, make });
    switch (b.kind) {
      case 'user':
        return one(() => this.userBubble(b));
      case 'said':
        return one(() => this.saidBubble(b));
      case 'sending':
        return one(() => this.sendingBubble(b));
      case 'wait':
        return one(() => this.waitBubble(b));
      case 'system':
        return one(() => this.systemBubble(b));
      case 'event':
        return one(() => h('article', { class: 'system' }, h('p', { class: 'label' }, b.label || words.event), h('pre', { tabIndex: 0 }, b.text)));
      case 'task':
        return { key: b.key, sig: sig + JSON.stringify([...this.model.took, ...this.lives]), make: () => this.task(b), update: (el) => this.updateTask(el, b) };
      case 'answer':
      case 'live':
        return { key: b.key, sig, make: () => this.answer(), update: (el) => this.updateAnswer(el, b) };
      case 'thinking':
        return one(() => h('p', { class: 'thinking' }, h('span', { class: 'dots', 'aria-hidden': 'true' }, '●'), ' ', b.notice || words.thinking));
    }
    throw new Error(`no such block: ${b.kind}`);
  }

  text(input) {
    const out = [];
    if (input.forwarded) out.push(h('p', { class: 'label' }, `forwarded: ${input.forwarded}`));
    if (input.quote) out.push(h('blockquote', {}, input.quote));
    out.push(h('div', { class: 'words', dir: 'auto' }, input.text));
    for (const f of input.files || []) out.push(h('p', { class: 'label' }, `📎 ${f}`));
    return out;
  }

  // foot is the line under a message: its sign, which tells more when pressed,
  // and when it came.
  foot(state, id, f, when, ...more) {
    const { sign, text } = stateText(state, f || {});
    const life = this.lives.get(id);
    return [
      h('p', { class: 'foot' }, h('button', {
        type: 'button', class: `state s-${state}`, title: words.buttons.why, 'aria-label': `${text}. ${words.buttons.why}`,
        'aria-expanded': String(Boolean(life)), 'data-act': `why:${id}`, onclick: () => this.ask(id),
      }, h('span', { class: 'sign', 'aria-hidden': 'true' }, sign), h('span', {}, text)), ...more, stamp(when)),
      life && this.life(life, f),
    ];
  }

  lifeSig(id) {
    return id && this.lives.has(id) ? this.lives.get(id).text : '';
  }

  // life is what is known of a message: the recorded times, and the gateway's
  // own words.
  life(life, f) {
    const past = [];
    if (f && f.at) past.push(`${words.life.accepted} ${clock(f.at, true)}`);
    if (f && f.step) past.push(words.life.step(f.step));
    if (f && f.changed && f.changed > f.at) past.push(`${stateText(f.state).sign} ${clock(f.changed, true)}`);
    return h('div', { class: 'life', role: 'status' }, past.length > 0 && h('p', { class: 'past' }, past.join(' → ')), h('p', { dir: 'auto' }, life.text));
  }

  userBubble(b) {
    const f = b.fate;
    const when = (f && f.at) || b.when;
    return h('article', { class: 'you', 'aria-label': 'You' }, ...this.text(b.input),
      ...(f ? this.foot(f.state, b.input.id, f, when) : [h('p', { class: 'foot' }, stamp(when))]));
  }

  saidBubble(b) {
    const f = b.fate;
    return h('article', { class: f && f.state === 'dropped' ? 'you gone' : 'you command', 'aria-label': 'You' }, h('div', { class: 'words', dir: 'auto' }, b.item.text),
      ...(f ? this.foot(f.state, b.item.id, f, b.at) : [h('p', { class: 'foot' }, stamp(b.at))]));
  }

  sendingBubble(b) {
    const o = b.out;
    const { sign, text } = stateText(o.fault ? 'unsent' : 'sending');
    return h('article', { class: 'you sending', 'aria-label': 'You' }, h('div', { class: 'words', dir: 'auto' }, o.body.text),
      h('p', { class: 'foot' },
        h('span', { class: 'state' }, h('span', { class: 'sign', 'aria-hidden': 'true' }, sign), h('span', {}, o.fault ? `${text}: ${o.fault}` : text)),
        o.fault && this.button('retry', () => this.act.retry(o.body.id)),
        o.fault && this.button('discard', () => this.act.discard(o.body.id)), stamp(o.at)));
  }

  button(name, onclick) {
    return h('button', { type: 'button', class: `do do-${name}`, 'data-act': name, onclick }, words.buttons[name]);
  }

  waitBubble(b) {
    const e = b.entry;
    const press = (verb) => this.button(verb, () => this.act.press(`${verb}:${e.ticket}@`));
    return h('article', { class: 'you wait', 'aria-label': 'You, waiting' }, ...this.text(e.input),
      ...this.foot(e.state, e.input.id, { ...this.model.fateOf(e.input), state: e.state, step: 0, idle: !b.running }, 0, ticking(e.at)),
      h('p', { class: 'foot acts' },
        e.state === 'held' && press('run'),
        e.state === 'queued' && b.running > 0 && press('now'),
        e.state === 'pending' && press('queue'),
        this.button('edit', () => this.act.edit(e)),
        press('drop')));
  }

  systemBubble(b) {
    const it = b.item;
    return h('article', { class: `system ${it.kind}` }, h('div', { class: 'md', dir: 'auto' }, markdown(it.text || '')),
      ...(it.files || []).map((f, n) => h('p', { class: 'file' },
        h('a', { href: `/api/sessions/${this.model.chat}/file?id=${encodeURIComponent(it.id)}&n=${n}`, download: f.name }, `⤓ ${f.name}`))),
      h('p', { class: 'foot acts' },
        ...(it.buttons || []).map((x) => h('button', { type: 'button', class: 'do', 'data-act': x.data, onclick: () => this.act.press(x.data) }, x.text)), stamp(it.at)));
  }

  answer() {
    return h('article', { class: 'answer', 'aria-label': 'Answer' }, h('div', { class: 'md', dir: 'auto' }), h('p', { class: 'foot' }));
  }

  // updateAnswer shows an answer, while it is written and after: the element
  // stays, so that nothing blinks when the last word has come.
  updateAnswer(el, b) {
    const live = b.kind === 'live';
    const mark = { stopped: words.stopped, replaced: words.interrupted, failed: words.failed }[b.end];
    el.className = `answer ${live ? 'live' : b.end}`;
    if (live) el.setAttribute('aria-busy', 'true');
    else el.removeAttribute('aria-busy');
    el._text = b.text;
    patch(el.firstElementChild, markdown(b.text));
    patch(el.lastElementChild, h('p', {},
      live && h('span', { class: b.notice ? 'notice' : '' }, b.notice || words.writing),
      mark && h('span', { class: 'mark' }, mark), !live && b.text && copyButton('answer'), !live && stamp(b.when)));
  }

  task(b) {
    const el = h('details', { class: 'task' }, h('summary'), h('div', { class: 'steps' }));
    el.open = !b.over || b.calls <= 8; // a long finished task is a line
    return el;
  }

  updateTask(el, b) {
    el.classList.toggle('running', !b.over);
    const took = b.over ? h('span', { class: 'took' }, span(b.ended - b.began)) : ticking(this.model.since() || b.began);
    el.firstElementChild.replaceChildren(h('span', {}, words.task(b.steps, b.calls, notesIn(b))), took);
    sync(el.lastElementChild, b.items.flatMap((it) => this.taskItem(it, b)));
  }

  taskItem(it, task) {
    const sig = JSON.stringify(it) + (this.model.took.get(it.call && it.call.id) || '') + task.over + this.lifeSig(it.input && it.input.id);
    if (it.kind === 'text') return [{ key: it.key, sig, make: () => h('div', { class: 'md aside', dir: 'auto' }, markdown(it.text)) }];
    if (it.kind === 'steer') return [{ key: it.key, sig, make: () => this.steer(it) }];
    return [
      { key: it.key, sig, make: () => this.call(it), update: (el) => this.updateCall(el, it, task) },
      ...it.steers.map((s) => ({ key: s.key, sig: JSON.stringify(s) + this.lifeSig(s.input.id), make: () => this.steer(s) })),
    ];
  }

  call(it) {
    const el = h('details', { class: 'call' },
      h('summary', {}, h('span', { class: 'icon', 'aria-hidden': 'true' }), h('span', { class: 'step' }, `step ${it.step}`), h('code', {}, it.call.name),
        h('span', { class: 'args' }, shortArgs(it.call.args)), h('span', { class: 'how' }), h('span', { class: 'time' })),
      h('div', { class: 'body' }, h('p', { class: 'label' }, words.args), h('pre', { tabIndex: 0 }, pretty(it.call.args)),
        h('p', { class: 'label' }, words.output, copyButton('next')), h('pre', { class: 'out', tabIndex: 0 })));
    return el;
  }

  updateCall(el, it, task) {
    const { row, live } = it;
    const running = !row && live && live.state === 'running';
    let how = '';
    let icon = '·';
    if (row && row.job) [icon, how] = ['⇢', words.job(row.job)];
    else if (row && row.notrun) [icon, how] = ['⊘', words.notRun];
    else if (row && row.unknown) [icon, how] = ['?', words.unknown];
    else if (row && row.stopped) [icon, how] = ['■', words.stopped];
    else if (row) [icon, how] = row.failed ? ['✗', words.failed] : ['✓', ''];
    else if (live && live.state === 'job') icon = '⇢';
    else if (live && live.state === 'skipped') [icon, how] = ['⊘', words.notRun];
    else if (live && live.state === 'done') icon = live.failed ? '✗' : '✓';
    else if (running) icon = '◌';
    el.className = `call ${running ? 'running' : ''} ${how === words.failed ? 'bad' : ''} ${how === words.notRun ? 'skipped' : ''}`;
    el.querySelector('.icon').textContent = icon;
    el.querySelector('.how').textContent = how;
    const took = this.model.took.get(it.call.id);
    const time = el.querySelector('.time');
    if (running) time.replaceChildren(ticking(Date.parse(live.began)));
    else if (took) time.textContent = span(took * 1000);
    else time.textContent = row && !row.notrun && row.at > it.at ? span(row.at - it.at) : '';
    const out = el.querySelector('.out');
    const text = row ? row.body || '' : (live && live.tail) || words.noOutput;
    if (out.textContent !== text) out.textContent = text;
    if (it.call.bad) el.title = it.call.bad;
    if (task.over) time.querySelectorAll('[data-since]').forEach((x) => x.remove());
  }

  // steer is a person's words inside the task, at the row they went in on.
  steer(s) {
    const f = s.fate;
    const state = f ? f.state : 'steered';
    const head = state === 'attached' ? words.noteWaits(s.n, s.step) : words.note(s.n, s.step);
    return h('article', { class: 'steer', 'aria-label': 'You, steered in' }, h('p', { class: 'head' }, head), ...this.text(s.input),
      ...this.foot(state, s.input.id, { ...f, step: s.step }, (f && f.at) || s.when));
  }
}

function pretty(args) {
  try {
    return JSON.stringify(JSON.parse(args), null, 2);
  } catch {
    return args;
  }
}

// subjects are the names under which tools take what a call is about.
const subjects = ['command', 'path', 'pattern', 'query', 'url', 'id'];

// shortArgs is a call's arguments for people, as the live view has them: what it
// is about first, bare, then the other short ones by name.
function shortArgs(args) {
  let fields;
  try {
    fields = Object.entries(JSON.parse(args));
  } catch {
    return args.slice(0, 160);
  }
  const text = (v) => (typeof v === 'string' ? v : JSON.stringify(v));
  let about = fields.findIndex(([name]) => subjects.includes(name));
  if (about < 0) about = fields.findIndex(([, v]) => typeof v === 'string');
  const words = about < 0 ? [] : [text(fields[about][1])];
  fields.forEach(([name, v], i) => {
    if (i !== about && text(v).length <= 40) words.push(`${name}=${text(v)}`);
  });
  return words.join(' ').slice(0, 160);
}

// notesIn counts what was steered into a task, for its folded line.
function notesIn(task) {
  return task.items.reduce((n, it) => n + (it.kind === 'steer' ? 1 : (it.steers || []).length), 0);
}
