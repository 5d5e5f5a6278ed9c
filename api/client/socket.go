package client

import (
	"context"
	"net"
	"net/http"
)

// local returns a client for a unix socket.
func local(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", o.Socket)
	}
	return &Client{
		base: "http://" + localHost, socket: o.Socket, userAgent: o.UserAgent, reason: o.Reason, timeout: o.Timeout,
		http: &http.Client{Transport: &http.Transport{DialContext: dial}, CheckRedirect: refuseRedirect},
	}
}

// localHost stands where a host would in requests over a socket.
const localHost = "localhost"

// asked names the server that gets the requests, for errors.
func (c *Client) asked() string {
	if c.socket != "" {
		return "the subnet manager at " + c.socket
	}
	return "the service at " + c.base
}
