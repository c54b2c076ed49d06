// The message box: sending, editing what waits, completing commands. What is
// typed outlives a reload.

import { h } from '/view.js';

export class Composer {
  constructor($, act) {
    this.$ = $;
    this.act = act;
    this.box = $('text');
    this.menu = $('commands');
    this.commands = [];
    this.wanted = ''; // a mode asked for and not yet confirmed
    this.editing = null;
    this.choice = -1;
    $('form').addEventListener('submit', (e) => {
      e.preventDefault();
      this.submit();
    });
    $('unedit').addEventListener('click', () => this.endEdit());
    this.box.addEventListener('input', () => this.typed());
    this.box.addEventListener('keydown', (e) => this.key(e));
    // Some phones send no key for Enter, only the line break it would make.
    this.box.addEventListener('beforeinput', (e) => {
      if (e.inputType !== 'insertLineBreak' || this.shift || e.isComposing) return;
      e.preventDefault();
      if (!this.entered) this.submit();
      this.entered = false;
    });
    this.box.addEventListener('blur', () => setTimeout(() => this.closeMenu(), 150));
  }

  // open shows the draft of a conversation.
  open(chat) {
    this.draft = `draft:${chat}`;
    this.wanted = '';
    this.editing = null;
    this.$('editing').hidden = true;
    this.set(sessionStorage.getItem(this.draft) || '');
  }

  set(text) {
    this.box.value = text;
    this.box.setSelectionRange(text.length, text.length);
    this.size();
    this.closeMenu();
  }

  size() {
    this.box.style.height = 'auto';
    this.box.style.height = `${Math.min(this.box.scrollHeight + 2, Math.max(120, innerHeight / 3))}px`;
  }

  typed() {
    if (!this.editing) this.keep(this.box.value);
    this.size();
    this.openMenu();
  }

  keep(text) {
    try {
      if (text) sessionStorage.setItem(this.draft, text);
      else sessionStorage.removeItem(this.draft);
    } catch {
      // the browser keeps no more: the text is still in the box
    }
  }

  submit() {
    const text = this.box.value.trim();
    if (!text) return;
    if (this.editing) {
      const id = this.editing.input.id;
      this.endEdit();
      this.act.amend(id, text);
      return;
    }
    this.keep('');
    this.set('');
    // Here every conversation stays in the list: /new begins another one.
    if (/^\/new$/i.test(text)) this.act.begin();
    else this.act.submit(text);
  }

  // edit takes a message that waits into the box; the draft is kept.
  edit(entry) {
    this.editing = entry;
    this.$('editing').hidden = false;
    this.set(entry.input.text);
    this.box.focus();
  }

  endEdit() {
    this.editing = null;
    this.$('editing').hidden = true;
    this.set(sessionStorage.getItem(this.draft) || '');
    this.box.focus();
  }

  slash() {
    this.box.focus();
    if (!this.box.value) this.box.value = '/';
    this.typed();
  }

  key(e) {
    if (e.isComposing) return;
    const open = !this.menu.hidden;
    this.shift = e.shiftKey;
    this.entered = e.key === 'Enter';
    if (e.key === 'Enter' && !e.shiftKey) {
      e.preventDefault();
      const c = this.shown && this.shown[this.choice];
      if (open && c && this.box.value.slice(1) !== c.name) this.complete(c);
      else this.submit();
    } else if (open && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) {
      e.preventDefault();
      const n = this.shown.length;
      this.choose((this.choice + (e.key === 'ArrowDown' ? 1 : n - 1)) % n);
    } else if (open && e.key === 'Tab' && !e.shiftKey) {
      e.preventDefault();
      this.complete(this.shown[this.choice]);
    } else if (e.key === 'Escape' && (open || this.editing)) {
      e.preventDefault(); // not a /stop
      if (open) this.closeMenu();
      else this.endEdit();
    } else if (e.key === 'ArrowUp' && !this.box.value && !this.editing) {
      const last = this.act.lastPending();
      if (last) {
        e.preventDefault();
        this.edit(last);
      }
    }
  }

  openMenu() {
    const m = /^\/([a-z0-9_]*)$/i.exec(this.box.value);
    this.shown = m && !this.editing ? this.commands.filter((c) => c.name.startsWith(m[1].toLowerCase())) : [];
    if (!this.shown.length) {
      this.closeMenu();
      return;
    }
    this.menu.replaceChildren(...this.shown.map((c, i) => h('li', {
      role: 'option', id: `command-${i}`, onmousedown: (e) => { e.preventDefault(); this.complete(c); },
    }, h('code', {}, `/${c.name}${c.args ? ` ${c.args}` : ''}`), h('span', {}, c.help))));
    this.menu.hidden = false;
    this.choose(0);
  }

  closeMenu() {
    this.menu.hidden = true;
    this.shown = [];
    this.choice = -1;
    this.box.removeAttribute('aria-activedescendant');
  }

  choose(i) {
    this.choice = i;
    [...this.menu.children].forEach((li, k) => li.setAttribute('aria-selected', String(k === i)));
    this.menu.children[i].scrollIntoView({ block: 'nearest' });
    this.box.setAttribute('aria-activedescendant', `command-${i}`);
  }

  complete(c) {
    this.box.value = `/${c.name}${c.args ? ' ' : ''}`;
    this.typed();
    this.closeMenu();
    this.box.focus();
  }
}
