// What stands below the conversation: the phase with its clock, the jobs, the
// mode, and a line for what a control has to say. And the list of keys.

import { h, sync } from '/view.js';
import { clock, keys, phaseText, placeholders, span, words } from '/words.js';

const sayTime = 6000; // ms that a line stands

export class Bar {
  // act: endJob, home.
  constructor($, act) {
    this.$ = $;
    this.act = act;
    $('keylist').append(...keys.flatMap(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)]));
    $('keys').addEventListener('click', (e) => {
      if (e.target === $('keys')) $('keys').close(); // beside it
    });
  }

  showKeys() {
    if (!this.$('keys').open) this.$('keys').showModal();
  }

  // say tells what a control did; it is read out and goes by itself.
  say(text) {
    clearTimeout(this.timer);
    this.$('hint').textContent = text;
    this.$('hint').hidden = !text;
    if (text) this.timer = setTimeout(() => this.say(''), sayTime);
  }

  // hide takes a control away and the focus with it home.
  hide(el, hidden) {
    const had = hidden && !el.hidden && el.contains(document.activeElement);
    el.hidden = hidden;
    if (had) this.act.home();
  }

  draw(model, composer) {
    const $ = this.$;
    const turn = model.running();
    const phase = model.phase();
    document.body.dataset.phase = turn ? phase : 'idle';
    document.body.toggleAttribute('data-lost', model.lostAt > 0);
    const title = model.title || words.untitled;
    $('title').textContent = title;
    $('title').dir = 'auto';
    document.title = `${turn ? '● ' : ''}${title} · Coxswain`;
    $('phase').replaceChildren(...this.phase(model, turn, phase));
    const waiting = model.slot.length;
    this.hide($('waiting'), !waiting);
    $('waiting').textContent = words.waiting(waiting);
    this.hide($('stop'), !turn);
    this.jobs(model);
    const mode = composer.wanted || (model.status && model.status.mode) || '';
    if (model.status && model.status.mode === composer.wanted) composer.wanted = '';
    for (const r of document.querySelectorAll('#mode input')) r.checked = r.value === mode;
    $('text').placeholder = turn ? placeholders[mode] || placeholders.queue : placeholders.idle;
  }

  phase(model, turn, phase) {
    if (model.lostAt) {
      return [h('span', { class: 'name' }, words.lost), h('span', { class: 'nums' }, words.lostAt(clock(model.lostAt)))];
    }
    const live = turn && model.live.turn === turn ? model.live : null;
    const bits = [h('span', { class: 'name' }, phaseText(phase))];
    if (live && live.step) bits.push(h('span', { class: 'nums' }, `step ${live.step}`));
    const since = turn && model.since();
    if (since) bits.push(h('span', { class: 'nums', 'data-since': String(since) }, span(model.now() - since)));
    return bits;
  }

  // jobs are chips, each with what ends it.
  jobs(model) {
    const ul = this.$('jobs');
    const had = ul.contains(document.activeElement);
    sync(ul, model.jobs.map((j) => ({
      key: j.id,
      sig: JSON.stringify(j),
      make: () => h('li', { class: `job ${j.state}` },
        h('span', { 'aria-hidden': 'true' }, '⇢'), h('code', {}, j.id), h('span', { class: 'what', title: j.name, dir: 'auto' }, j.name),
        j.state === 'running' ? h('span', { class: 'took', 'data-since': String(j.since) }, span(model.now() - j.since)) : h('span', {}, words.jobOver[j.state] || j.state),
        j.state === 'running' && h('button', { type: 'button', class: 'do', 'aria-label': words.jobEnd(j.id, j.name), onclick: () => this.act.endJob(j.id) }, words.buttons.end)),
    })));
    ul.hidden = !model.jobs.length;
    if (had && !ul.contains(document.activeElement)) this.act.home();
  }
}
