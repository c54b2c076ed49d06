package storetest

import (
	"context"
	"time"

	"coxswain/session"
)

// run is call for what answers only with an error.
func (f *Faulty) run(ctx context.Context, point string, do func() error) error {
	_, err := call(ctx, f, point, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// commitPoint names a commit by its content, see Points.
func commitPoint(r session.Commit) string {
	first := session.RowType(0)
	if len(r.Rows) > 0 {
		first = r.Rows[0].Type
	}
	switch {
	case r.End:
		return "commit.end"
	case len(r.Take) > 0, first == session.RowFold:
		return "commit.join"
	case first == session.RowAssistant:
		return "commit.assistant"
	case first == session.RowTool:
		return "commit.tool"
	case r.Drain:
		return "commit.drain"
	}
	return "commit.state"
}

// Accept implements session.Store, with faults at accept.
func (f *Faulty) Accept(ctx context.Context, r session.Accept) (session.Accepted, error) {
	return call(ctx, f, "accept", func() (session.Accepted, error) { return f.Store.Accept(ctx, r) })
}

// Load implements session.Store, with faults at load.
func (f *Faulty) Load(ctx context.Context, key session.Key) (session.Lane, error) {
	return call(ctx, f, "load", func() (session.Lane, error) { return f.Store.Load(ctx, key) })
}

// Begin implements session.Store, with faults at begin.
func (f *Faulty) Begin(ctx context.Context, r session.Begin) (session.Begun, error) {
	return call(ctx, f, "begin", func() (session.Begun, error) { return f.Store.Begin(ctx, r) })
}

// Claim implements session.Store, with faults at claim.
func (f *Faulty) Claim(ctx context.Context, key session.Key, nonce string, ttl time.Duration) (session.Begun, error) {
	return call(ctx, f, "claim", func() (session.Begun, error) { return f.Store.Claim(ctx, key, nonce, ttl) })
}

// Renew implements session.Store, with faults at renew.
func (f *Faulty) Renew(ctx context.Context, l session.Lease) (session.Flags, error) {
	return call(ctx, f, "renew", func() (session.Flags, error) { return f.Store.Renew(ctx, l) })
}

// Commit implements session.Store, with faults at commit.….
func (f *Faulty) Commit(ctx context.Context, l session.Lease, r session.Commit) (session.Committed, error) {
	return call(ctx, f, commitPoint(r), func() (session.Committed, error) { return f.Store.Commit(ctx, l, r) })
}

// Release implements session.Store, with faults at release.
func (f *Faulty) Release(ctx context.Context, l session.Lease) error {
	return f.run(ctx, "release", func() error { return f.Store.Release(ctx, l) })
}

// Amend implements session.Store, with faults at amend.edit, amend.drop and
// amend.set.
func (f *Faulty) Amend(ctx context.Context, r session.Amend) (session.Amended, error) {
	point := [...]string{session.AmendEdit: "amend.edit", session.AmendDrop: "amend.drop", session.AmendSet: "amend.set"}[r.Kind]
	return call(ctx, f, point, func() (session.Amended, error) { return f.Store.Amend(ctx, r) })
}

// Stop implements session.Store, with faults at stop.
func (f *Faulty) Stop(ctx context.Context, r session.Stop) (session.Stopped, error) {
	return call(ctx, f, "stop", func() (session.Stopped, error) { return f.Store.Stop(ctx, r) })
}

// Reset implements session.Store, with faults at reset.
func (f *Faulty) Reset(ctx context.Context, r session.Reset) (session.Lane, error) {
	return call(ctx, f, "reset", func() (session.Lane, error) { return f.Store.Reset(ctx, r) })
}

// Post implements session.Store, with faults at post.
func (f *Faulty) Post(ctx context.Context, r session.Post) (session.Posted, error) {
	return call(ctx, f, "post", func() (session.Posted, error) { return f.Store.Post(ctx, r) })
}

// Rows implements session.Store, with faults at rows.
func (f *Faulty) Rows(ctx context.Context, key session.Key, gen, after int64, limit int) ([]session.Row, error) {
	return call(ctx, f, "rows", func() ([]session.Row, error) { return f.Store.Rows(ctx, key, gen, after, limit) })
}

// Due implements session.Store, with faults at due.
func (f *Faulty) Due(ctx context.Context, limit int) ([]session.Key, error) {
	return call(ctx, f, "due", func() ([]session.Key, error) { return f.Store.Due(ctx, limit) })
}

// OutTake implements session.Store, with faults at outtake.
func (f *Faulty) OutTake(ctx context.Context, key session.Key, nonce string, takeover time.Duration) (session.Part, bool, time.Duration, error) {
	type answer struct {
		p    session.Part
		ok   bool
		wait time.Duration
	}
	a, err := call(ctx, f, "outtake", func() (answer, error) {
		p, ok, wait, err := f.Store.OutTake(ctx, key, nonce, takeover)
		return answer{p, ok, wait}, err
	})
	return a.p, a.ok, a.wait, err
}

// OutDone implements session.Store, with faults at outdone.
func (f *Faulty) OutDone(ctx context.Context, key session.Key, nonce string, d session.PartDone) error {
	return f.run(ctx, "outdone", func() error { return f.Store.OutDone(ctx, key, nonce, d) })
}

// OutDue implements session.Store, with faults at outdue.
func (f *Faulty) OutDue(ctx context.Context, limit int) ([]session.Key, error) {
	return call(ctx, f, "outdue", func() ([]session.Key, error) { return f.Store.OutDue(ctx, limit) })
}

// Fates implements session.Store, with faults at fates.
func (f *Faulty) Fates(ctx context.Context, key session.Key, limit int) ([]session.Fate, error) {
	return call(ctx, f, "fates", func() ([]session.Fate, error) { return f.Store.Fates(ctx, key, limit) })
}

// Seen implements session.Store, with faults at seen.
func (f *Faulty) Seen(ctx context.Context, key session.Key, dedupe string) (bool, error) {
	return call(ctx, f, "seen", func() (bool, error) { return f.Store.Seen(ctx, key, dedupe) })
}

// Settle implements session.Store, with faults at settle.
func (f *Faulty) Settle(ctx context.Context, key session.Key, s []session.FateSet) error {
	return f.run(ctx, "settle", func() error { return f.Store.Settle(ctx, key, s) })
}

// Sessions implements session.Store, with faults at sessions.
func (f *Faulty) Sessions(ctx context.Context, after string, limit int) ([]session.Lane, error) {
	return call(ctx, f, "sessions", func() ([]session.Lane, error) { return f.Store.Sessions(ctx, after, limit) })
}

// Delete implements session.Store, with faults at delete.
func (f *Faulty) Delete(ctx context.Context, key session.Key) error {
	return f.run(ctx, "delete", func() error { return f.Store.Delete(ctx, key) })
}

// Expire implements session.Store, with faults at expire.
func (f *Faulty) Expire(ctx context.Context, key session.Key, idle time.Duration) error {
	return f.run(ctx, "expire", func() error { return f.Store.Expire(ctx, key, idle) })
}

// Doc implements session.Store, with faults at doc.
func (f *Faulty) Doc(ctx context.Context, name string) ([]byte, int64, error) {
	type answer struct {
		data    []byte
		version int64
	}
	a, err := call(ctx, f, "doc", func() (answer, error) {
		data, v, err := f.Store.Doc(ctx, name)
		return answer{data, v}, err
	})
	return a.data, a.version, err
}

// PutDoc implements session.Store, with faults at putdoc.
func (f *Faulty) PutDoc(ctx context.Context, name string, version int64, data []byte) error {
	return f.run(ctx, "putdoc", func() error { return f.Store.PutDoc(ctx, name, version, data) })
}

// Reserve implements session.Store, with faults at reserve.
func (f *Faulty) Reserve(ctx context.Context, r session.Reserve) (session.Reserved, error) {
	return call(ctx, f, "reserve", func() (session.Reserved, error) { return f.Store.Reserve(ctx, r) })
}

// Spent implements session.Store, with faults at spent.
func (f *Faulty) Spent(ctx context.Context, op string, actual int64) error {
	return f.run(ctx, "spent", func() error { return f.Store.Spent(ctx, op, actual) })
}

// Grant implements session.Store, with faults at grant.
func (f *Faulty) Grant(ctx context.Context, g session.Grant) (session.Granted, error) {
	return call(ctx, f, "grant", func() (session.Granted, error) { return f.Store.Grant(ctx, g) })
}

// Stats implements session.Store, with faults at stats.
func (f *Faulty) Stats(ctx context.Context) (session.Stats, error) {
	return call(ctx, f, "stats", func() (session.Stats, error) { return f.Store.Stats(ctx) })
}

// Ping implements session.Store, with faults at ping.
func (f *Faulty) Ping(ctx context.Context) error {
	return f.run(ctx, "ping", func() error { return f.Store.Ping(ctx) })
}

// Close implements session.Store, without faults. A process that crashed
// closes nothing.
func (f *Faulty) Close() error {
	if err := f.alive(); err != nil {
		return err
	}
	return f.Store.Close()
}
