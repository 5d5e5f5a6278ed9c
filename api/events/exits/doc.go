// Package exits sends events to receivers beside webhooks: a system log (Syslog) and Alertmanager. Package api/webhook/delivery keeps what
// is to be sent, and sends it again; what it hands over is an event in the envelope of CloudEvents.
package exits
