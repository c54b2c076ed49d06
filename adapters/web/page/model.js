// What the page knows of one conversation, and the order in which it is shown.
// No DOM here. The server is asked again after every hint, so all of this may
// be forgotten at any time but what was written and not yet taken (api.js).

import { stage, waits, words } from '/words.js';

export class Model {
  constructor(chat) {
    this.chat = chat;
    this.cursor = '';
    this.rows = [];
    this.fates = new Map(); // ticket → fate, the furthest heard of
    this.slot = [];
    this.memo = new Map(); // kind:id → reply or typed message
    this.live = { turn: 0, phase: 'idle', text: '', tools: [], notes: [] };
    this.took = new Map(); // call → seconds, as far as this page saw it
    this.turn = 0;
    this.status = null;
    this.title = '';
    this.skew = 0; // the server's clock minus ours, ms
    this.readAt = 0;
    this.loaded = false;
    this.jobs = []; // that go on beside the turns
    this.lostAt = 0; // since when nothing is heard, 0 = all is well
    this.ending = null; // a text that has left the live view and is no row yet
  }

  // now is the server's time; it stands still while the server is not heard, so
  // that no clock tells what nobody knows.
  now() {
    return (this.lostAt || Date.now()) + this.skew;
  }

  // applyTranscript takes what a reading gave that was asked at readAt.
  applyTranscript(t, readAt) {
    if (t.whole) {
      this.rows = t.rows;
      this.fates.clear();
    } else {
      const last = this.rows.length ? this.rows[this.rows.length - 1].seq : 0;
      this.rows.push(...t.rows.filter((r) => r.seq > last));
    }
    for (const f of t.fates) this.putFate(f);
    for (const it of t.memo) this.memo.set(`${it.kind}:${it.id}`, it);
    Object.assign(this, { cursor: t.cursor, slot: t.slot, turn: t.turn, jobs: t.jobs || [], status: t.status, title: t.title || '', loaded: true, readAt });
    this.skew = t.now - Date.now();
    // Whoever asked after the text had left the view has its row by now.
    if (this.ending && readAt >= this.ending.at) this.ending = null;
  }

  // putFate takes a fate from a reading or the stream; one that comes late
  // never takes a message back. A later turn that takes it again begins its
  // life anew.
  putFate(f) {
    let old = this.fates.get(f.ticket);
    if (old && old.turn && f.turn > old.turn) old = { ...old, state: '', step: 0 };
    else if (old && (f.turn && f.turn < old.turn || stage(old.state) > stage(f.state))) f = { ...f, state: old.state, turn: old.turn, step: old.step };
    this.fates.set(f.ticket, {
      ...old, ...f,
      step: f.step || (old && old.step) || 0,
      at: f.at || (old && old.at) || 0,
      waited: f.waited || (old && old.waited) || false,
      turn: f.turn || (old && old.turn) || 0,
    });
  }

  putReply(it) {
    this.memo.set(`${it.kind}:${it.id}`, it);
  }

  // applyState takes the live view, whole or what changed of it.
  applyState(s) {
    const l = s.whole ? { text: '', tools: [], notes: [] } : { ...this.live };
    if (s.text !== undefined) l.text = s.text;
    if (s.add) l.text += s.add;
    if (s.tools) l.tools = s.tools;
    if (s.notes) l.notes = s.notes;
    for (const k of ['turn', 'phase', 'since', 'step', 'steps', 'notice', 'waiting', 'done', 'end']) l[k] = s[k];
    for (const t of l.tools) if (t.took) this.took.set(t.call, t.took);
    l.heard = Date.now();
    if (this.live.text && !l.text) this.ending = { turn: this.live.turn, text: this.live.text, at: l.heard };
    else if (l.text) this.ending = null;
    this.live = l;
    this.skew = s.now - Date.now();
  }

  // running is the turn that is open as far as we know, 0 = idle.
  running() {
    const stale = this.live.turn !== this.turn && this.readAt > this.live.heard;
    if (this.live.turn && !this.live.done && !stale) return this.live.turn;
    if (this.live.done && this.live.turn === this.turn) return 0;
    return this.turn;
  }

  phase() {
    const turn = this.running();
    if (!turn) return 'idle';
    return this.live.turn === turn ? this.live.phase : (this.status && this.status.phase) || 'model';
  }

  since() {
    if (this.live.turn === this.running() && this.live.since) return this.live.since;
    return this.status && this.status.elapsed_s ? this.now() - this.status.elapsed_s * 1000 : 0;
  }

  // lastPending is the newest message that may still be edited.
  lastPending() {
    return this.slot.length ? this.slot[this.slot.length - 1] : null;
  }

  fateOf(input) {
    return this.fates.get(input.ticket) || input.fate || null;
  }

  // blocks is the conversation as a list of what is shown, oldest first. out are
  // the messages the server has not confirmed.
  blocks(out) {
    const shown = new Set();
    const list = this.rowBlocks(shown);
    const byMsg = new Map();
    for (const f of this.fates.values()) for (const id of f.msgs || []) byMsg.set(id, f);
    const waiting = this.slot.map((e) => {
      for (const id of e.input.ids || []) shown.add(id);
      return { kind: 'wait', key: `w${e.ticket}`, at: Infinity, entry: e, running: this.running() };
    });
    list.push(...this.memoBlocks(shown, byMsg));
    const sending = out.filter((o) => o.kind === 'messages' && !shown.has(o.body.id) && !this.memo.has(`said:${o.body.id}`));
    list.sort((a, b) => a.at - b.at); // stable: rows stay in their order
    list.push(...this.liveBlock());
    list.push(...waiting);
    for (const o of sending) list.push({ kind: 'sending', key: `o${o.body.id}`, at: Infinity, out: o });
    return list;
  }

  // memoBlocks are replies, and typed messages that are no rows: commands, and
  // what was dropped. What came before a /new belongs to the old conversation.
  memoBlocks(shown, byMsg) {
    const items = [...this.memo.values()];
    let from = 0;
    for (const it of items) if (it.kind === 'said' && /^\/new\b/i.test(it.text)) from = Math.max(from, it.at);
    const ends = new Map(); // turn → text that a row shows already
    for (const r of this.rows) if (r.end && r.text) ends.set(r.turn, r.text);
    const list = [];
    for (const it of items) {
      if (it.at < from || it.kind === 'final') continue;
      if (it.kind === 'said') {
        const fate = byMsg.get(it.id);
        if (shown.has(it.id) || (fate && fate.state !== 'dropped' && !waits(fate.state))) continue;
        list.push({ kind: 'said', key: `s${it.id}`, at: it.at, item: it, fate: fate || (it.state ? { state: it.state } : null) });
      } else {
        const row = it.kind === 'notice' && it.turn && ends.get(it.turn);
        if (row && it.text && it.text.startsWith(row)) continue; // an answer cut short: it is a row
        list.push({ kind: 'system', key: `r${it.id}`, at: it.at, item: it });
      }
    }
    return list;
  }

  // rowBlocks makes user bubbles, tasks and answers of the rows.
  rowBlocks(shown) {
    const list = [];
    const answers = this.answers = new Map(); // turn → how many of its answers are rows
    let task = null;
    let turn = 0;
    let step = 0;
    let clock = 0;
    const calls = new Map(); // call → its place in the task
    const places = new Map(); // seq of a tool row → its place
    const begin = (r) => {
      if (task && task.turn === r.turn) return;
      task = { kind: 'task', key: `t${r.turn}.${r.seq}`, at: clock, turn: r.turn, items: [], began: clock, ended: 0, steps: 0, calls: 0, over: true };
      list.push(task);
    };
    for (const r of this.rows) {
      clock = Math.max(clock, r.at);
      if (r.turn !== turn) {
        if (task) task.over = true;
        [turn, step, task] = [r.turn, 0, null];
      }
      for (const i of r.inputs || []) for (const id of i.ids || []) shown.add(id);
      if (r.type === 'user' || r.type === 'fold') {
        if (r.again) list.push({ kind: 'event', key: `a${r.seq}`, at: clock, text: r.again, label: words.again });
        if (r.event) list.push({ kind: 'event', key: `e${r.seq}`, at: clock, text: r.event });
        for (const i of r.inputs || []) list.push({ kind: 'user', key: `u${i.ticket}`, turn: r.turn, at: clock, when: r.at, input: i, fate: this.fateOf(i), fold: r.type === 'fold' });
      } else if (r.type === 'assistant') {
        step++;
        if (r.calls && r.calls.length) {
          begin(r);
          task.steps = step;
          if (r.text) task.items.push({ kind: 'text', key: `x${r.seq}`, text: r.text });
          for (const c of r.calls) {
            const place = { kind: 'call', key: `c${c.id}`, step, call: c, at: r.at, row: null, steers: [] };
            calls.set(c.id, place);
            task.items.push(place);
            task.calls++;
          }
        } else {
          list.push({ kind: 'answer', key: this.answerKey(r.turn), at: clock, turn: r.turn, text: r.text || '', end: r.end || '', when: r.at });
          answers.set(r.turn, (answers.get(r.turn) || 0) + 1);
          if (task) task.ended = r.at;
        }
      } else if (r.type === 'tool') {
        const place = calls.get(r.call);
        if (place) {
          place.row = r;
          places.set(r.seq, place);
        }
        if (task) task.ended = r.at;
      } else if (r.type === 'steer') {
        const place = places.get(r.on);
        for (const i of r.inputs || []) {
          const fate = this.fateOf(i);
          const s = { key: `n${i.ticket}`, n: r.n, step: (fate && fate.step) || r.step || step + 1, input: i, fate, when: r.at };
          if (place) place.steers.push(s);
          else if (task) task.items.push({ kind: 'steer', ...s });
        }
      }
    }
    // Fates are kept of the newest few hundred messages; of older ones the end of
    // their turn tells the same.
    const ends = new Map(this.rows.filter((r) => r.end).map((r) => [r.turn, r.end === 'replaced' ? 'stopped' : r.end]));
    for (const b of list) if (b.kind === 'user' && !b.fate && ends.has(b.turn)) b.fate = { state: ends.get(b.turn) };
    if (task && task.turn === this.running()) {
      task.over = false;
      task.ended = 0;
      this.mergeTools(task);
    }
    return list;
  }

  // mergeTools lays what is live over the calls of the running task.
  mergeTools(task) {
    const live = new Map(this.live.turn === task.turn ? this.live.tools.map((t) => [t.call, t]) : []);
    for (const it of task.items) if (it.kind === 'call') it.live = live.get(it.call.id) || null;
  }

  // answerKey names the next answer of a turn, whether it is being written or a
  // row: the one becomes the other in its place.
  answerKey(turn) {
    return `a${turn}.${this.answers.get(turn) || 0}`;
  }

  // liveBlock is the message being written, until a row has it.
  liveBlock() {
    const l = this.live;
    const turn = this.running();
    const shown = this.ending && !l.text ? this.ending : l;
    if (shown.turn && shown.text && (turn === shown.turn || this.turn === shown.turn || shown === this.ending)) {
      const last = this.rows.findLast((r) => r.turn === shown.turn && r.type === 'assistant');
      const stored = last && ((last.text && last.text.trim() === shown.text.trim()) || last.end);
      if (!stored) return [{ kind: 'live', key: this.answerKey(shown.turn), at: Infinity, text: shown.text, notice: l.notice || '' }];
    }
    if (turn && (this.phase() === 'model' || this.phase() === 'preparing' || l.notice)) {
      return [{ kind: 'thinking', key: 'thinking', at: Infinity, notice: l.turn === turn ? l.notice || '' : '' }];
    }
    return [];
  }
}
