// Copying: the buttons on code, outputs and answers.

import { words } from '/words.js';

// listenCopy hears all copy buttons below root; say tells a failure.
export function listenCopy(root, say) {
  root.addEventListener('click', async (e) => {
    const b = e.target.closest && e.target.closest('[data-copy]');
    if (!b) return;
    const text = b.dataset.copy === 'answer' ? b.closest('.answer')._text : b.parentElement.nextElementSibling.textContent;
    if (!(await copy(text))) {
      say(words.copyFailed);
      return;
    }
    b.textContent = words.copied;
    setTimeout(() => { b.textContent = words.copy; }, 1500);
  });
}

// copy puts text on the clipboard. On plain http to another machine there is no
// clipboard for pages; there the old way still works.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // the old way
  }
  const had = document.activeElement;
  const box = document.createElement('textarea');
  box.value = text;
  box.className = 'unseen';
  box.setAttribute('aria-hidden', 'true');
  document.body.append(box);
  box.select();
  let ok = false;
  try {
    ok = document.execCommand('copy');
  } catch {
    // not allowed at all
  }
  box.remove();
  if (had) had.focus({ preventScroll: true });
  return ok;
}
