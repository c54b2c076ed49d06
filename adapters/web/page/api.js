// The wire: reading, sending with the same id until it is taken, and the
// stream of events with its reconnection.

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, body) {
  const r = await fetch(path, {
    method: body ? 'POST' : 'GET',
    headers: body ? { 'Content-Type': 'application/json' } : {},
    body: body ? JSON.stringify(body) : undefined,
    signal: AbortSignal.timeout(20000),
    redirect: 'error',
  });
  if (r.ok) return r.json();
  let text = `${r.status}`;
  try {
    text = (await r.json()).error || text;
  } catch {
    // not ours: a proxy's page
  }
  throw new Refused(r.status, text);
}

export const get = (path) => ask(path);
export const post = (path, body) => ask(path, body);

// newID makes an id; crypto.randomUUID is absent on plain http to other hosts.
export function newID() {
  const b = crypto.getRandomValues(new Uint8Array(16));
  return [...b].map((x) => x.toString(16).padStart(2, '0')).join('').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export const newChat = () => newID().replaceAll('-', '').slice(0, 12);

// An Outbox holds what was done here and is not yet taken by the server. It
// outlives a reload. One request at a time, in order, so that what was typed
// first is accepted first.
export class Outbox {
  constructor(chat, { changed, login }) {
    this.chat = chat;
    this.changed = changed;
    this.login = login;
    this.slot = `out:${chat}`;
    this.list = JSON.parse(sessionStorage.getItem(this.slot) || '[]');
    this.busy = false; // a request is under way
    this.timer = 0; // of the next try, 0 = none waits
    this.wait = 0;
    this.closed = false;
  }

  save() {
    const keep = this.list.filter((o) => !o.sent);
    try {
      if (keep.length) sessionStorage.setItem(this.slot, JSON.stringify(keep));
      else sessionStorage.removeItem(this.slot);
    } catch {
      // the browser keeps no more: it is sent all the same, only a reload loses it
    }
  }

  // put adds a request: kind is the last part of its path. done hears its answer,
  // or why it was refused, unless the page is loaded anew before.
  put(kind, body, done) {
    this.list.push({ kind, body, at: Date.now(), done });
    this.save();
    this.changed();
    this.pump();
  }

  retry(id) {
    for (const o of this.list) if (o.body.id === id) o.fault = '';
    this.save();
    this.pump();
  }

  discard(id) {
    this.list = this.list.filter((o) => o.body.id !== id || o.sent);
    this.save();
    this.changed();
  }

  // seen forgets messages that the server shows by now.
  seen(shows) {
    this.list = this.list.filter((o) => !o.sent || !(o.kind !== 'messages' || shows(o.body.id)));
  }

  // hurry tries now what waits for its next try.
  hurry() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.pump();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  async pump() {
    while (!this.busy && !this.timer && !this.closed) {
      const o = this.list.find((x) => !x.sent && !x.fault);
      if (!o) return;
      this.busy = true;
      const again = await this.attempt(o);
      this.busy = false;
      this.save();
      this.changed();
      if (again && !this.closed) {
        this.timer = setTimeout(() => {
          this.timer = 0;
          this.pump();
        }, again);
      }
    }
  }

  // attempt sends one request and gives the ms until it should be sent again.
  async attempt(o) {
    try {
      const body = o.kind === 'messages' ? { ...o.body, age: Math.max(0, Date.now() - o.at) } : o.body;
      const answer = await post(`/api/sessions/${this.chat}/${o.kind}`, body);
      o.sent = true;
      if (o.done) o.done(answer, null);
      this.wait = 0;
      return 0;
    } catch (e) {
      if (e instanceof Refused && e.status < 500 && ![401, 408, 429].includes(e.status)) {
        // Refused for good: a message says so, a button is only forgotten.
        if (o.kind === 'messages') o.fault = e.message;
        else this.list = this.list.filter((x) => x !== o);
        if (o.done) o.done(null, e);
        return 0;
      }
      if (e.status === 401) this.login();
      return (this.wait = Math.min(this.wait * 2 || 500, 10000));
    }
  }
}

// A stream that is silent for this long (ms) is lost, though no error came: the
// server lets its heart be heard every ten seconds.
const silence = 25000;

// A Stream is the conversation's events; it comes back by itself.
export class Stream {
  constructor(chat, on) {
    this.chat = chat;
    this.on = on;
    this.last = '';
    this.wait = 500;
    this.open();
  }

  open() {
    this.close();
    this.closed = false;
    this.heard = Date.now();
    this.watch = setInterval(() => {
      if (Date.now() - this.heard < silence) return;
      this.on.down();
      this.open();
    }, 2500);
    this.es = new EventSource(`/api/sessions/${this.chat}/events?after=${encodeURIComponent(this.last)}`);
    for (const name of ['hello', 'state', 'rows', 'fate', 'reply', 'beat']) {
      this.es.addEventListener(name, (e) => {
        this.heard = Date.now();
        this.last = e.lastEventId || this.last;
        if (name === 'hello') {
          this.wait = 500;
          this.on.up();
        }
        if (this.on[name]) this.on[name](JSON.parse(e.data));
      });
    }
    this.es.onerror = () => {
      this.on.down();
      // A network fault is retried by the browser; an answer that is no stream
      // is not.
      if (this.es.readyState === EventSource.CLOSED && !this.closed) {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.open(), this.wait);
        this.wait = Math.min(this.wait * 2, 5000);
      }
    };
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    clearInterval(this.watch);
    if (this.es) this.es.close();
  }
}
