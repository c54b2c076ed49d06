// A small Markdown that builds DOM nodes. Text becomes text nodes and nothing
// else: there is no innerHTML here, no attribute is made from text but the href
// of a link, and that only when it parses as http or https.
//
// The text may be cut off anywhere, for it is shown while it streams in. Work
// grows with the length of the text: a search for a closing mark that failed
// is not made again.

import { words } from '/words.js';

const deepest = 6; // quotes in lists in quotes; beyond, text is plain

export function markdown(text) {
  const out = document.createDocumentFragment();
  blocks(out, text.replace(/\r\n?/g, '\n').split('\n'), 0);
  return out;
}

function make(parent, tag, cls) {
  const el = document.createElement(tag);
  if (cls) el.className = cls;
  parent.append(el);
  return el;
}

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)/;
const bullet = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)/;
const heading = /^ {0,3}(#{1,6})\s+(?=\S)/;
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const divider = /^[\s|:-]+$/;

function startsBlock(line, next) {
  return fence.test(line) || heading.test(line) || rule.test(line) || /^ {0,3}>/.test(line) || bullet.test(line) || isTable(line, next);
}

function isTable(line, next) {
  return line.includes('|') && next !== undefined && next.includes('-') && next.includes('|') && divider.test(next);
}

function blocks(parent, lines, depth) {
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    let m;
    if (line.trim() === '') {
      i++;
    } else if ((m = fence.exec(line))) {
      i = codeBlock(parent, lines, i, m);
    } else if ((m = heading.exec(line))) {
      const el = make(parent, 'h' + Math.min(6, m[1].length + 2));
      inline(el, line.slice(m[0].length).replace(/ #+$/, ''), 0);
      i++;
    } else if (rule.test(line)) {
      make(parent, 'hr');
      i++;
    } else if (isTable(line, lines[i + 1])) {
      const from = i;
      while (i < lines.length && lines[i].includes('|')) i++;
      table(parent, lines.slice(from, i));
    } else if (depth < deepest && /^ {0,3}>/.test(line)) {
      const from = i;
      while (i < lines.length && /^ {0,3}>/.test(lines[i])) i++;
      blocks(make(parent, 'blockquote'), lines.slice(from, i).map((l) => l.replace(/^ {0,3}> ?/, '')), depth + 1);
    } else if (depth < deepest && bullet.test(line)) {
      i = list(parent, lines, i, depth);
    } else {
      const from = i++;
      while (i < lines.length && lines[i].trim() !== '' && !startsBlock(lines[i], lines[i + 1])) i++;
      inline(make(parent, 'p'), lines.slice(from, i).join('\n'), 0);
    }
  }
}

function codeBlock(parent, lines, i, m) {
  const from = ++i;
  const mark = m[1];
  const ends = (l) => {
    const t = l.trim();
    return t.length >= mark.length && t[0] === mark[0] && [...t].every((c) => c === mark[0]);
  };
  while (i < lines.length && !ends(lines[i])) i++;
  const box = make(parent, 'div', 'code');
  const head = make(box, 'div', 'codehead');
  make(head, 'span').textContent = m[2].slice(0, 24);
  head.append(copyButton('next'));
  const pre = make(box, 'pre');
  pre.tabIndex = 0; // it scrolls sideways
  make(pre, 'code').textContent = lines.slice(from, i).join('\n');
  return i + 1;
}

// copyButton copies what stands behind its own line ('next'), or the answer it
// belongs to. One listener hears them all, so that equal nodes stay equal.
export function copyButton(what) {
  const b = document.createElement('button');
  b.type = 'button';
  b.className = 'copy';
  b.dataset.copy = what;
  b.textContent = words.copy;
  b.setAttribute('aria-label', what === 'next' ? words.copyCode : words.copyAnswer);
  return b;
}

const columnsMost = 64;

// cells splits a line at its bars; a bar behind a backslash or in code is text.
function cells(line) {
  const out = [''];
  let code = 0; // the length of the run of ` that is open
  const text = line.trim();
  for (let i = text[0] === '|' ? 1 : 0; i < text.length; i++) {
    const c = text[i];
    if (c === '\\' && text[i + 1] === '|') {
      out[out.length - 1] += '|';
      i++;
    } else if (c === '|' && !code) {
      if (i === text.length - 1) break;
      out.push('');
    } else if (c === '`') {
      const run = runOf(text, i);
      if (code === run) code = 0;
      else if (!code && text.indexOf('`'.repeat(run), i + run) > 0) code = run;
      out[out.length - 1] += text.slice(i, i + run);
      i += run - 1;
    } else {
      out[out.length - 1] += c;
    }
  }
  return out.slice(0, columnsMost).map((c) => c.trim());
}

// table makes rows and columns; what is wider than the page scrolls by itself.
function table(parent, lines) {
  const head = cells(lines[0]);
  const sides = cells(lines[1]).map((c) => (/^:-*:$/.test(c) ? 'mid' : /-:$/.test(c) ? 'end' : ''));
  const box = make(parent, 'div', 'table');
  box.tabIndex = 0;
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', words.table);
  const el = make(box, 'table');
  const row = (part, tag, list) => {
    const tr = make(part, 'tr');
    head.forEach((_, j) => {
      const cell = make(tr, tag, sides[j]);
      if (tag === 'th') cell.scope = 'col';
      inline(cell, list[j] || '', 0);
    });
  };
  row(make(el, 'thead'), 'th', head);
  const body = make(el, 'tbody');
  for (const l of lines.slice(2)) row(body, 'td', cells(l));
}

function list(parent, lines, i, depth) {
  const first = bullet.exec(lines[i]);
  const ordered = /\d/.test(first[2]);
  const el = make(parent, ordered ? 'ol' : 'ul');
  if (ordered) el.start = parseInt(first[2], 10);
  const indent = first[1].length;
  while (i < lines.length) {
    const m = bullet.exec(lines[i]);
    if (!m || m[1].length !== indent || /\d/.test(m[2]) !== ordered) break;
    const inner = m[0].length;
    const body = [lines[i].slice(inner)];
    i++;
    while (i < lines.length) {
      const l = lines[i];
      const lead = l.length - l.trimStart().length;
      if (l.trim() === '') {
        const next = lines[i + 1];
        if (next === undefined || next.trim() === '' || next.length - next.trimStart().length <= indent) break;
      } else if (lead <= indent && startsBlock(l, lines[i + 1])) {
        break;
      } else if (lead <= indent && lines[i - 1].trim() === '') {
        break;
      }
      body.push(l.slice(Math.min(lead, inner)));
      i++;
    }
    const item = make(el, 'li');
    blocks(item, body, depth + 1);
    // A tight item is its text, not a paragraph.
    if (item.firstChild && item.firstChild.tagName === 'P') item.firstChild.replaceWith(...item.firstChild.childNodes);
    if (i < lines.length && lines[i].trim() === '' && bullet.test(lines[i + 1] || '')) i++;
  }
  return i;
}

const word = /[\p{L}\p{N}_]/u;

function inline(parent, text, depth) {
  let plain = '';
  let i = 0;
  const missing = new Set(); // marks that do not close any more
  const flush = () => {
    if (plain) parent.append(plain);
    plain = '';
  };
  while (i < text.length) {
    const c = text[i];
    if (c === '\\' && i + 1 < text.length && /[!-/:-@[-`{-~]/.test(text[i + 1])) {
      plain += text[i + 1];
      i += 2;
      continue;
    }
    if (c === '\n') {
      flush();
      make(parent, 'br');
      i++;
      continue;
    }
    const span = depth < deepest ? find(text, i, missing) : null;
    if (!span) {
      // A run of marks that opens nothing is text as a whole.
      const run = c === '`' || c === '*' || c === '_' || c === '~' ? runOf(text, i) : 1;
      plain += text.slice(i, i + run);
      i += run;
      continue;
    }
    flush();
    if (span.href) {
      const a = make(parent, 'a');
      a.href = span.href;
      a.target = '_blank';
      a.rel = 'noopener noreferrer nofollow';
      if (span.auto) a.textContent = span.body;
      else inline(a, span.body, deepest); // no link in a link
    } else if (span.tag === 'code') {
      make(parent, 'code').textContent = span.body;
    } else {
      inline(make(parent, span.tag), span.body, depth + 1);
    }
    i = span.end;
  }
  flush();
}

function runOf(text, i) {
  let n = 1;
  while (text[i + n] === text[i]) n++;
  return n;
}

// find gives the span that begins at i, or null.
function find(text, i, missing) {
  const c = text[i];
  if (c === '`') {
    const mark = '`'.repeat(runOf(text, i));
    const from = i + mark.length;
    let end = missing.has(mark) ? -1 : text.indexOf(mark, from);
    while (end >= 0 && runOf(text, end) !== mark.length) end = text.indexOf(mark, end + runOf(text, end));
    if (end < 0) {
      missing.add(mark);
      return null;
    }
    let body = text.slice(from, end);
    if (body.length > 2 && body[0] === ' ' && body.at(-1) === ' ') body = body.slice(1, -1);
    return { tag: 'code', body, end: end + mark.length };
  }
  if (c === '*' || c === '_') {
    return emphasis(text, i, c + c, 'strong', missing) || emphasis(text, i, c, 'em', missing);
  }
  if (c === '~') return emphasis(text, i, '~~', 'del', missing);
  if (c === '[') return link(text, i);
  if (c === 'h' && !(i && word.test(text[i - 1]))) return autolink(text, i);
  return null;
}

function emphasis(text, i, mark, tag, missing) {
  if (!text.startsWith(mark, i) || missing.has(mark)) return null;
  const from = i + mark.length;
  const next = text[from];
  if (next === undefined || /\s/.test(next) || next === mark[0]) return null;
  if (mark[0] === '_' && i > 0 && word.test(text[i - 1])) return null;
  for (let end = text.indexOf(mark, from + 1); end >= 0; end = text.indexOf(mark, end + 1)) {
    if (/\s/.test(text[end - 1]) || text[end - 1] === '\\') continue;
    if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) continue;
    if (mark[0] === '_' && end + mark.length < text.length && word.test(text[end + mark.length])) continue;
    return { tag, body: text.slice(from, end), end: end + mark.length };
  }
  missing.add(mark);
  return null;
}

const linkMost = 2000; // an address or its text is not longer

function link(text, i) {
  const mid = i + text.slice(i, i + linkMost).indexOf('](');
  if (mid <= i + 1) return null;
  const part = text.slice(mid + 2, mid + 2 + linkMost);
  const m = /^<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"\n]*")?\)/.exec(part);
  const href = m && safe(m[1]);
  return href ? { href, body: text.slice(i + 1, mid), end: mid + 2 + m[0].length } : null;
}

function autolink(text, i) {
  const m = /^https?:\/\/[^\s<>"'`*|]{1,2000}/.exec(text.slice(i, i + linkMost));
  if (!m) return null;
  let body = m[0].replace(/[.,;:!?]+$/, '');
  if (body.endsWith(')') && !body.includes('(')) body = body.slice(0, -1);
  const href = safe(body);
  return href ? { href, body, end: i + body.length, auto: true } : null;
}

// safe gives an address that only opens a page, or nothing.
export function safe(href) {
  let u;
  try {
    u = new URL(href);
  } catch {
    return '';
  }
  return (u.protocol === 'http:' || u.protocol === 'https:') && !u.username && !u.password ? u.href : '';
}
