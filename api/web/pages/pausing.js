// A button that holds what changes on a page by itself, so that it can be read.

import {badge, el} from './dom.js';

// pausing makes the button. held reports whether the page is held; each function of resumed is called when it goes on. waits
// says how many changes there were meanwhile.
export function pausing() {
  let paused = false;
  let missed = 0;
  const again = [];
  const button = el('button', {type: 'button', 'data-key': 'pause'}, 'Pause');
  const state = el('span', {role: 'status'});
  const count = el('span'); // is not read out each time
  function show() {
    button.textContent = paused ? 'Go on' : 'Pause';
    state.replaceChildren(...(paused ? [badge('paused', 'wait'), ' Lists stay as they are.'] : []));
    count.textContent = '';
  }
  button.addEventListener('click', () => {
    paused = !paused;
    missed = 0;
    show();
    if (!paused) for (const f of again) f();
  });
  return {
    node: el('p', {class: 'pager'}, button, state, count),
    held: () => paused,
    resumed: (f) => again.push(f),
    waits() {
      missed += 1;
      count.textContent = `Events meanwhile: ${missed}`;
    },
  };
}
