// Package alerts is the one source of the alert rules for Prometheus, of their tests, of the page that says what each alert
// means, and of the dashboards for Grafana. Its tests write and compare the files:
//
//	go test ./packaging/alerts -update
package alerts
