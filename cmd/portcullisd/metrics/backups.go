package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/backup"
)

// backups is the metric of the files in the directory of backups.
type backups struct {
	of   *backup.Service
	desc *prometheus.Desc
}

// NewBackups creates the metric of the newest backup. It has no value where no directory of backups is configured, or where it
// cannot be read.
func NewBackups(of *backup.Service) prometheus.Collector {
	return &backups{of, prometheus.NewDesc("portcullis_backup_newest_timestamp_seconds", "Time of the newest backup in the directory of this instance, in Unix time; 0: there is none.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (b *backups) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc }

// Collect implements prometheus.Collector.
func (b *backups) Collect(ch chan<- prometheus.Metric) {
	newest, configured, err := b.of.Newest()
	if !configured || err != nil {
		return
	}
	at := 0.0
	if !newest.IsZero() {
		at = float64(newest.Unix())
	}
	ch <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, at)
}
