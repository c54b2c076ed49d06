// Puts blocks on the page. Every text goes in as a text node. Elements are
// kept by key and changed in place, so that what is folded open stays open,
// selected text stays selected, and only what changed moves.

import { markdown } from '/markdown.js';
import { stateText, span, words } from '/words.js';

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
  el.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
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

// ticking is a time that goes on by itself: tick writes it.
const ticking = (since) => h('span', { class: 'took', 'data-since': String(since) });

export function tick(root, now) {
  for (const el of root.querySelectorAll('[data-since]')) {
    const text = span(now - Number(el.dataset.since));
    if (el.textContent !== text) el.textContent = text;
  }
}

export class View {
  // act is what buttons do: press, edit, why, retry, discard.
  constructor(root, act) {
    this.root = root;
    this.act = act;
  }

  render(blocks, model) {
    this.model = model;
    sync(this.root, blocks.map((b) => this.block(b)));
    tick(this.root, model.now());
  }

  block(b) {
    const sig = JSON.stringify(b);
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
        return one(() => h('article', { class: 'system' }, h('p', { class: 'label' }, words.event), h('pre', { tabIndex: 0 }, b.text)));
      case 'task':
        return { key: b.key, sig: sig + JSON.stringify([...this.model.took]), make: () => this.task(b), update: (el) => this.updateTask(el, b) };
      case 'answer':
        return one(() => this.answer(b));
      case 'live':
        return { key: b.key, sig, make: () => h('article', { class: 'answer live', 'aria-busy': 'true' }, h('div', { class: 'md' })), update: (el) => this.live(el, b) };
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

  // state is the sign of a message's recorded state; pressing it asks /why.
  state(state, id, more) {
    const { sign, text } = stateText(state, more);
    return h('button', {
      type: 'button', class: `state s-${state}`, title: words.buttons.why, 'aria-label': `${text}. ${words.buttons.why}`,
      onclick: () => this.act.why(id),
    }, h('span', { class: 'sign', 'aria-hidden': 'true' }, sign), h('span', {}, text));
  }

  userBubble(b) {
    const f = b.fate;
    return h('article', { class: 'you', 'aria-label': 'You' }, ...this.text(b.input),
      f && h('p', { class: 'foot' }, this.state(f.state, b.input.id, f)));
  }

  saidBubble(b) {
    const f = b.fate;
    return h('article', { class: f ? 'you gone' : 'you command', 'aria-label': 'You' }, h('div', { class: 'words', dir: 'auto' }, b.item.text),
      f && h('p', { class: 'foot' }, this.state(f.state, b.item.id, f)));
  }

  sendingBubble(b) {
    const o = b.out;
    const { sign, text } = stateText(o.fault ? 'unsent' : 'sending');
    return h('article', { class: 'you sending', 'aria-label': 'You' }, h('div', { class: 'words', dir: 'auto' }, o.body.text),
      h('p', { class: 'foot' },
        h('span', { class: 'state' }, h('span', { class: 'sign', 'aria-hidden': 'true' }, sign), h('span', {}, o.fault ? `${text}: ${o.fault}` : text)),
        o.fault && this.button('retry', () => this.act.retry(o.body.id)),
        o.fault && this.button('discard', () => this.act.discard(o.body.id))));
  }

  button(name, onclick) {
    return h('button', { type: 'button', class: `do do-${name}`, onclick }, words.buttons[name]);
  }

  waitBubble(b) {
    const e = b.entry;
    const press = (verb) => this.button(verb, () => this.act.press(`${verb}:${e.ticket}`));
    return h('article', { class: 'you wait', 'aria-label': 'You, waiting' }, ...this.text(e.input),
      h('p', { class: 'foot' }, this.state(e.state, e.input.id, { idle: !b.running }), ticking(e.at)),
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
      it.buttons && it.buttons.length > 0 && h('p', { class: 'foot acts' },
        ...it.buttons.map((x) => h('button', { type: 'button', class: 'do', onclick: () => this.act.press(x.data) }, x.text))));
  }

  answer(b) {
    const mark = { stopped: words.stopped, replaced: words.interrupted, failed: words.failed }[b.end];
    return h('article', { class: `answer ${b.end}`, 'aria-label': 'Answer' }, h('div', { class: 'md', dir: 'auto' }, markdown(b.text)),
      (mark || b.delivered) && h('p', { class: 'foot' }, mark ? h('span', { class: 'mark' }, mark) : h('span', { class: 'seen' }, '✓ ', words.delivered)));
  }

  live(el, b) {
    el.firstElementChild.replaceChildren(markdown(b.text));
    const note = el.querySelector('.notice');
    if (note) note.remove();
    if (b.notice) el.append(h('p', { class: 'notice' }, b.notice));
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
    const sig = JSON.stringify(it) + (this.model.took.get(it.call && it.call.id) || '') + task.over;
    if (it.kind === 'text') return [{ key: it.key, sig, make: () => h('div', { class: 'md aside', dir: 'auto' }, markdown(it.text)) }];
    if (it.kind === 'steer') return [{ key: it.key, sig, make: () => this.steer(it) }];
    return [
      { key: it.key, sig, make: () => this.call(it), update: (el) => this.updateCall(el, it, task) },
      ...it.steers.map((s) => ({ key: s.key, sig: JSON.stringify(s), make: () => this.steer(s) })),
    ];
  }

  call(it) {
    const el = h('details', { class: 'call' },
      h('summary', {}, h('span', { class: 'icon', 'aria-hidden': 'true' }), h('span', { class: 'step' }, `step ${it.step}`), h('code', {}, it.call.name),
        h('span', { class: 'args' }, shortArgs(it.call.args)), h('span', { class: 'how' }), h('span', { class: 'time' })),
      h('div', { class: 'body' }, h('p', { class: 'label' }, words.args), h('pre', { tabIndex: 0 }, pretty(it.call.args)),
        h('p', { class: 'label' }, words.output), h('pre', { class: 'out', tabIndex: 0 })));
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
      h('p', { class: 'foot' }, this.state(state, s.input.id, { ...f, step: s.step })));
  }
}

function pretty(args) {
  try {
    return JSON.stringify(JSON.parse(args), null, 2);
  } catch {
    return args;
  }
}

function shortArgs(args) {
  let text = args;
  try {
    text = Object.values(JSON.parse(args)).map((v) => (typeof v === 'string' ? v : JSON.stringify(v))).join(' · ');
  } catch {
    // shown as it is
  }
  return text.replace(/\s+/g, ' ').slice(0, 160);
}

// notesIn counts what was steered into a task, for its folded line.
function notesIn(task) {
  return task.items.reduce((n, it) => n + (it.kind === 'steer' ? 1 : (it.steers || []).length), 0);
}
