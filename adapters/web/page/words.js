// Every sentence the page says by itself, and the sign of each state.

// One sign per state, no two alike but queued and held, which both wait.
const states = {
  sending: ['⏳', 'sending…'],
  unsent: ['⚠', 'not sent'],
  accepted: ['✓', 'accepted'],
  queued: ['😴', 'queued, runs after this task'],
  pending: ['👀', 'waits to be steered in'],
  held: ['😴', 'held, runs only when you say so'],
  running: ['▶', 'running'],
  attached: ['📌', 'goes in'],
  steered: ['✍', 'steered in'],
  answered: ['👍', 'answered'],
  dropped: ['👎', 'dropped'],
  stopped: ['✋', 'stopped'],
  failed: ['💔', 'failed'],
};

export const waits = (s) => s === 'queued' || s === 'pending' || s === 'held';

// stage orders the states of a message: what was consumed never waits again.
export function stage(s) {
  if (s === 'accepted') return 0;
  if (waits(s)) return 1;
  if (s === 'running' || s === 'attached') return 2;
  if (s === 'steered') return 3;
  return 4;
}

// stateText tells a message's recorded state, and for a steer the way there.
export function stateText(state, { step = 0, waited = false, idle = false } = {}) {
  const [sign, label] = states[state] || ['·', state];
  const at = step ? ` at step ${step}` : '';
  let text = label;
  if (state === 'attached') text = `waits → goes in${at}`;
  else if (state === 'steered') text = `waits → steered in${at}`;
  else if (step && stage(state) === 4) text = `waits → steered in${at} → ${label}`;
  else if (waited && !waits(state)) text = `waited → ${label}`;
  else if (state === 'queued' && idle) text = 'queued, runs next';
  return { sign, text };
}

const phases = {
  idle: 'Idle', preparing: 'Starting', model: 'Thinking', showing: 'Writing', tools: 'Working',
  asking: 'Asks you', compacting: 'Summarising', draining: 'The gateway is restarting',
};
export const phaseText = (p) => phases[p] || p;

export const placeholders = {
  idle: 'Write a task, / for commands',
  steer: 'Steer the running task',
  queue: 'Runs after this task',
  interrupt: 'Replaces this task',
};

export const words = {
  untitled: 'New session',
  offline: 'Connection lost, retrying. What you write is kept and sent then.',
  lost: 'Connection lost, retrying',
  lostAt: (time) => `since ${time}`,
  restarted: 'The gateway was restarted. The task goes on where it was.',
  empty: 'Give me a task. While it runs you can write on: your words go into the running task.',
  emptyHint: 'Try: “Write a short report on this folder”, and two seconds later: “make it two lines”.',
  noSessions: 'No sessions yet.',
  notFound: 'No session with that name.',
  interrupted: 'interrupted',
  failed: 'failed',
  notRun: 'not run',
  unknown: 'result unknown: the gateway stopped while it ran',
  stopped: 'stopped by you',
  job: (id) => `goes on as job ${id}`,
  note: (n, step) => `✍ your note went in${step ? ` at step ${step}` : ''}`,
  noteWaits: (n, step) => `📌 your note goes in${step ? ` at step ${step}` : ''}`,
  waiting: (n) => `Waiting ${n}`,
  task: (steps, calls, notes) => `${steps} step${steps === 1 ? '' : 's'} · ${calls} call${calls === 1 ? '' : 's'}${notes ? ` · ✍ ${notes} note${notes === 1 ? '' : 's'} went in` : ''}`,
  writing: 'writing…',
  copy: 'Copy',
  copied: 'Copied',
  copyCode: 'Copy the code',
  copyAnswer: 'Copy the answer',
  copyFailed: 'The browser does not let this page copy. Select the text and copy it by hand.',
  table: 'Table',
  jobEnd: (id, name) => `End job ${id}: ${name}`,
  jobOver: { running: '', ended: 'over', lost: 'lost' },
  jobEnding: (id) => `Job ${id} is being ended…`,
  modeSet: {
    steer: 'From now on what you write goes into the running task.',
    queue: 'From now on what you write runs after this task.',
    interrupt: 'From now on what you write replaces the running task.',
  },
  asking: 'Looking it up…',
  life: { accepted: 'Accepted', step: (n) => `Went in at step ${n}` },
  event: 'A background job ended',
  again: 'Asked again',
  thinking: 'thinking…',
  args: 'Arguments',
  output: 'Output',
  noOutput: 'no output yet',
  buttons: { now: 'Steer in now', queue: 'Queue', drop: 'Drop', edit: 'Edit', run: 'Run', retry: 'Try again', discard: 'Discard', why: 'What became of it?', end: 'End' },
};

// keys is the keyboard map, as the "?" dialog shows it.
export const keys = [
  ['Enter', 'send; while a task runs this steers it, as the mode says'],
  ['Shift+Enter', 'new line'],
  ['/', 'commands; ↑ ↓ choose, Tab completes'],
  ['↑', 'in an empty box: edit the last message that waits'],
  ['Esc', 'close what is open; with nothing open and an empty box: stop the task'],
  ['Ctrl+K', 'find a session'],
  ['Ctrl+Shift+O', 'new session'],
  ['Alt+1 2 3', 'mode: steer, queue, interrupt'],
  ['Tab', 'buttons of a message; its sign tells what became of it'],
  ['? or Ctrl+/', 'this list'],
];

const day = { day: 'numeric', month: 'short' };
const minute = { hour: '2-digit', minute: '2-digit' };

// clock writes a time of day, with the date if that is not today's; both are
// the reader's own.
export function clock(ms, seconds = false) {
  const t = new Date(ms);
  const time = t.toLocaleTimeString([], seconds ? { ...minute, second: '2-digit' } : minute);
  return t.toDateString() === new Date().toDateString() ? time : `${t.toLocaleDateString([], day)}, ${time}`;
}

// span writes milliseconds as people say them.
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (ms < 9950 && ms >= 0 && s < 10) return `${(Math.max(0, ms) / 1000).toFixed(ms < 1000 ? 1 : 0)} s`;
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m}:${String(s % 60).padStart(2, '0')}`;
  return `${Math.floor(m / 60)} h ${m % 60} min`;
}

export function ago(ms) {
  const m = Math.floor(ms / 60000);
  if (m < 1) return 'now';
  if (m < 60) return `${m} min`;
  if (m < 48 * 60) return `${Math.floor(m / 60)} h`;
  return `${Math.floor(m / 1440)} d`;
}
