package client

import (
	"net/http"
	"net/url"
)

// GoThrough has c go through a proxy. Tests serve on loopback addresses, which the rule of
// the environment has no proxy for.
func (c *Client) GoThrough(proxy *url.URL) {
	c.proxy = http.ProxyURL(proxy)
	c.http = c.newHTTP()
}
