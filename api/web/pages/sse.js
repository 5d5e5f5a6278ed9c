// Server-sent events out of a stream of text, as the HTML standard has them.

const most = 4 << 20; // characters of one event; a longer one is a fault of the service

// Events cuts a stream into events, and calls take with the name, the data and the id of each.
export class Events {
  constructor(take) {
    this.take = take;
    this.rest = '';
    this.id = '';
    this.clear();
  }

  clear() {
    this.name = 'message';
    this.data = [];
    this.size = 0;
  }

  // feed takes the next piece of the stream.
  feed(text) {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop();
    if (this.rest.length > most) throw new Error('the service sent an event without an end');
    for (const line of lines) this.line(line.endsWith('\r') ? line.slice(0, -1) : line);
  }

  line(line) {
    if (line === '') {
      if (this.data.length > 0) this.take(this.name, this.data.join('\n'), this.id);
      this.clear();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment, which keeps the connection open
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    switch (field) {
      case 'event': this.name = value; break;
      case 'id': this.id = value; break;
      case 'data':
        this.size += value.length;
        if (this.size > most) throw new Error('the service sent an event that is too long');
        this.data.push(value);
        break;
      default: // retry, and what later versions add
    }
  }
}
