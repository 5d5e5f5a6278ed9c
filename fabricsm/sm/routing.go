package sm

// RouteJob is a routing computation: a pure function of an immutable snapshot.
type RouteJob struct{ run func() *TablesReady }

// Run computes the tables and judges them. It may run in any goroutine and its
// result is to be stepped in.
func (j *RouteJob) Run() *TablesReady { return j.run() }

// TablesReady is the result of a RouteJob.
type TablesReady struct{}

func (*TablesReady) input() {}
