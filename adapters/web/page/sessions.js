// The list of conversations: beside the chat where there is room, and in a
// dialog on Ctrl+K.

import { get } from '/api.js';
import { ago, words } from '/words.js';
import { h } from '/view.js';

export class Sessions {
  constructor($, act) {
    this.$ = $;
    this.act = act;
    this.list = [];
    this.dialog = $('sessions');
    $('filter').addEventListener('input', () => this.draw());
    $('filter').addEventListener('keydown', (e) => {
      if (e.key === 'Enter') {
        e.preventDefault();
        const first = this.$('dialoglist').querySelector('button');
        if (first) first.click();
      } else if (e.key === 'ArrowDown') {
        e.preventDefault();
        this.step(this.$('dialoglist'), null, 1);
      }
    });
    for (const id of ['sidelist', 'dialoglist']) {
      $(id).addEventListener('keydown', (e) => {
        if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
        e.preventDefault();
        this.step($(id), document.activeElement, e.key === 'ArrowDown' ? 1 : -1);
      });
    }
    this.dialog.addEventListener('click', (e) => {
      if (e.target === this.dialog) this.dialog.close(); // beside it
    });
  }

  step(list, from, by) {
    const all = [...list.querySelectorAll('button')];
    const to = all[from ? all.indexOf(from) + by : 0];
    if (to) to.focus();
  }

  show() {
    if (this.dialog.open) return;
    this.$('filter').value = '';
    this.dialog.showModal();
    this.draw();
    this.refresh();
  }

  hide() {
    if (this.dialog.open) this.dialog.close();
  }

  // refresh reads the list; strict lets a fault through.
  async refresh(strict = false) {
    try {
      this.list = await get('/api/sessions');
      this.draw();
    } catch (e) {
      if (strict) throw e;
    }
    return this.list;
  }

  draw() {
    const word = this.$('filter').value.trim().toLowerCase();
    this.fill(this.$('sidelist'), this.list, words.noSessions);
    if (this.dialog.open) {
      this.fill(this.$('dialoglist'), this.list.filter((s) => `${s.title || ''} ${s.chat}`.toLowerCase().includes(word)), word ? words.notFound : words.noSessions);
    }
  }

  fill(ul, list, none) {
    const current = this.act.current();
    const focused = ul.contains(document.activeElement) && document.activeElement.dataset.chat;
    if (!list.length) {
      ul.replaceChildren(h('li', { class: 'none' }, none));
      return;
    }
    ul.replaceChildren(...list.map((s) => h('li', {}, h('button', {
      type: 'button', 'data-chat': s.chat, 'aria-current': s.chat === current ? 'true' : undefined,
      onclick: () => {
        this.hide();
        this.act.open(s.chat);
        this.draw();
      },
    }, h('span', { class: 'name', dir: 'auto' }, s.title || words.untitled),
    h('span', { class: 'meta' }, s.turn ? '● running' : ago(Date.now() - s.touched), s.waiting ? ` · ${words.waiting(s.waiting)}` : '')))));
    if (focused) {
      const again = [...ul.querySelectorAll('button')].find((b) => b.dataset.chat === focused);
      if (again) again.focus();
    }
  }
}
