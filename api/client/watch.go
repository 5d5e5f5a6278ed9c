package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	v1 "portcullis/api/v1"
)

// maxEvent bounds one line of an event stream.
const maxEvent = 1 << 20

// Watch returns a host now and after each change. The sequence ends after the first error, and with io.ErrUnexpectedEOF
// when the service ends the stream.
func (c *Client) Watch(ctx context.Context, id string) iter.Seq2[*v1.Host, error] {
	return func(yield func(*v1.Host, error) bool) {
		resp, err := c.send(ctx, c.http, http.MethodGet, "/v1/hosts/"+url.PathEscape(id)+"/watch")
		if err != nil {
			yield(nil, err)
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxEvent)
		for lines.Scan() {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			if !ok {
				continue // event names, comments and blank lines
			}
			var h v1.Host
			if err := json.Unmarshal(data, &h); err != nil {
				yield(nil, fmt.Errorf("watch host %s: event: %w", id, err))
				return
			}
			if !yield(&h, nil) {
				return
			}
		}
		err = lines.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		yield(nil, fmt.Errorf("watch host %s: %w", id, err))
	}
}
