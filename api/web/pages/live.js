// What a stream says of a list: whether it says when the list changes, and each time that it does.

import {badge, el} from './dom.js';

// announcing makes what a list listens to (live of paged), and a line that shows how it is. what names the items of the list, and
// every is how often it is asked for else, in seconds.
export function announcing(what, every) {
  let on = false;
  let before = false; // it was on
  const changed = [];
  const node = el('p', {role: 'status', 'data-key': 'live'}, 'Asking…');
  function show() {
    if (on) node.replaceChildren(badge('live', 'good'), ` ${what} appear as they are reported.`);
    else node.replaceChildren(badge(before ? 'stream lost' : 'not live', 'wait'), ` ${what} are asked for every ${every} s.`);
  }
  return {
    node,
    on: () => on,
    changed: (f) => changed.push(f),
    // says takes a message of the stream.
    says(live) {
      if (live !== on) {
        on = live;
        before ||= on;
        show();
      } else if (!live) show();
      if (on) for (const f of changed) f();
    },
    // lost notes that the stream is gone.
    lost() {
      on = false;
      show();
    },
  };
}
