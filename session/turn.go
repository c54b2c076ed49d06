package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"coxswain/steer"
)

// A Turn is an open turn in the hands of the Agent. Methods are called by the
// agent's goroutine unless they say otherwise.
type Turn struct {
	a        *actor
	h        *Hub
	lease    Lease
	number   int64
	gen      int64
	owner    Person
	admin    bool
	resumed  bool
	attempts int
	began    time.Time
	turnAt   time.Time // by the store's clock
	asked    MessageID

	life   context.Context // writes go on after the turn was cancelled
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Of the agent's goroutine alone.
	asker    Person // the account of the owner with whose authority it goes on
	rows     []Row
	seq      int64
	sent     int64 // as the store's: rows a request may have carried
	ops      int64
	step     int
	attached []Fate          // steers drained and not yet accepted by the model
	waited   map[int64]bool  // tickets people saw waiting
	inputs   map[int64]Input // tickets of this turn
	jobs     bool            // it began jobs

	mu      sync.Mutex
	phase   steer.Phase
	first   bool // the first request is not out, or has shown nothing
	spoke   bool // people saw words or files of it, or may have
	newest  time.Time
	author  UserID
	joins   []Entry
	folds   int                // follow-ups taken from joins
	gone    map[MessageID]bool // messages it was asked by that were deleted
	request context.CancelCauseFunc
	steers  int // waiting for this turn
	waiting int // in the slot
	parking bool
	over    []Job     // ended jobs not told
	leased  time.Time // the lease is at least as good as if it had been renewed then
	view    View
	chat    Key // where it is shown
	text    *strings.Builder
	bell    chan struct{}
}

// newTurn makes the turn of a lease that was asked for at asked.
func newTurn(life context.Context, a *actor, b Begun, asked time.Time, rows []Row, resumed bool) *Turn {
	t := &Turn{
		a: a, h: a.h, lease: b.Lease, number: b.Lane.Turn, gen: b.Lane.Gen, resumed: resumed,
		attempts: b.Lane.Attempts, life: life, rows: rows, seq: b.Lane.Seq, sent: b.Lane.Sent,
		inputs: map[int64]Input{},
		phase:  b.Lane.Phase, first: !resumed, spoke: resumed, newest: b.Lane.TurnAt, author: b.Lane.Owner,
		leased: asked, text: &strings.Builder{}, bell: make(chan struct{}, 1),
	}
	t.ctx, t.cancel = context.WithCancelCause(life)
	t.owner.ID = b.Lane.Owner
	for _, r := range rows[turnStart(rows, t.number):] {
		t.step += boolInt(r.Type == RowAssistant)
		if r.Type == RowUser {
			if who := DecodeUser(r).Asker; who.ID == b.Lane.Owner {
				t.owner = who
				t.speaks(who)
			}
		}
		for _, in := range rowInputs(r) {
			t.inputs[in.Ticket] = in
			if in.From.ID == b.Lane.Owner {
				t.owner = in.From
			}
			t.speaks(in.From)
			if len(in.Parts) > 0 {
				t.asked = in.Parts[len(in.Parts)-1].ID
			}
		}
	}
	if t.asker.ID == "" {
		t.asker = t.owner
	}
	t.admin = t.Admin()
	t.began, t.turnAt, t.chat = time.Now(), b.Lane.TurnAt, a.h.Routes.Home(a.key)
	t.view = View{
		Key: a.key, Turn: t.number, Asked: t.asked, Owner: t.owner, Phase: t.phase,
		Since: b.Lane.TurnAt, Step: t.step, Resumed: resumed,
	}
	for _, e := range b.Lane.Slot {
		if !e.Held && e.Want == steer.Steer && e.Turn == t.number {
			t.steers++
		}
	}
	return t
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// turnStart is the index of a turn's first row.
func turnStart(rows []Row, turn int64) int {
	i := len(rows)
	for i > 0 && rows[i-1].Turn == turn {
		i--
	}
	return i
}

// Key names the session.
func (t *Turn) Key() Key { return t.a.key }

// Number is the turn's number in its lane.
func (t *Turn) Number() int64 { return t.number }

// Gen is the generation the turn writes to.
func (t *Turn) Gen() int64 { return t.gen }

// Resumed reports that rows of this turn were written by an earlier runner.
func (t *Turn) Resumed() bool { return t.resumed }

// Attempts counts how often the turn was taken over from a dead runner.
func (t *Turn) Attempts() int { return t.attempts }

// Owner is whose turn it is: the account of theirs with whose authority it goes on.
func (t *Turn) Owner() Person { return t.asker }

// speaks takes note that somebody's words are part of the turn. Of several linked
// accounts of the owner one that is no admin stands: a link gives no authority, so
// what was written with less is not done with more (I10).
func (t *Turn) speaks(who Person) {
	if who.ID != t.owner.ID {
		return
	}
	if _, admin, _ := t.h.Access.Still(t.life, t.a.key, who); t.asker.ID == "" || !admin {
		t.asker = who
	}
}

// Admin reports whether the owner is an admin now (asked again, I10).
func (t *Turn) Admin() bool {
	_, admin, _ := t.h.Access.Still(t.life, t.a.key, t.asker) // unknown: no
	return admin
}

// SendsFiles reports whether files can be sent to the turn's chat.
func (t *Turn) SendsFiles() bool {
	_, ok := t.h.platform(t.a.key).(FileSender)
	return ok
}

// FileMost is how many bytes a file may have that is sent to the turn's chat, 0
// where the platform does not say.
func (t *Turn) FileMost() int64 {
	chat := t.h.Routes.Home(t.a.key)
	if p, ok := t.h.platforms[chat.Platform].(FileLimiter); ok {
		return p.FileMost(chat)
	}
	return 0
}

// Nonce names this process as the owner of jobs.
func (t *Turn) Nonce() string { return t.h.Nonce }

// Rows are all rows of the generation, oldest first; they are not changed.
func (t *Turn) Rows() []Row { return t.rows }

// MayDrain reports whether the newest row may still take a steer: it is this
// turn's, a tool row, and a drain of it would be its first.
func (t *Turn) MayDrain() bool {
	n := len(t.rows)
	return n > 0 && t.rows[n-1].Type == RowTool && t.rows[n-1].Turn == t.number
}

// Undrained reports whether no drain was taken since the newest row was stored.
func (t *Turn) Undrained() bool { return t.seq > t.sent }

// StepsDone counts the turn's model messages so far, those of earlier runners
// too.
func (t *Turn) StepsDone() int { return t.step }

// Bell rings when something came in: a steer waits, the process drains, a job
// ended. Ask Steers, Parking and Over what it was.
func (t *Turn) Bell() <-chan struct{} { return t.bell }

func (t *Turn) ring() {
	select {
	case t.bell <- struct{}{}:
	default:
	}
}

// Steers is how many steers wait to go in.
func (t *Turn) Steers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steers
}

// Parking reports that the turn must stop at the next safe point.
func (t *Turn) Parking() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parking
}

// Over gives the jobs that ended and have not been told.
func (t *Turn) Over() []Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// Phase is what the turn does. Any goroutine.
func (t *Turn) Phase() steer.Phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase
}

// SetPhase says what the turn does now; a commit stores it.
func (t *Turn) SetPhase(p steer.Phase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase = p
	t.view.Phase = p
}

func (t *Turn) firstRequest() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}

func (t *Turn) withinJoin(at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.h.JoinWindow > 0 && at.Sub(t.newest) <= t.h.JoinWindow
}

func (t *Turn) lastAuthor() UserID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.author
}

// join keeps an entry for the agent to fold in and calls the request back.
// Called by the actor.
func (t *Turn) join(e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, j := range t.joins {
		if j.Ticket == e.Ticket {
			t.joins[i] = e
			return
		}
	}
	t.joins = append(t.joins, e)
	t.newest, t.author = e.At, e.Author
	if t.request != nil {
		t.request(ErrJoined)
	}
}

// waits tells the turn what waits. Called by the actor.
func (t *Turn) waits(lane Lane, steers int) {
	waiting := 0
	for _, e := range lane.Slot {
		waiting += boolInt(!e.Held)
	}
	var over []Job
	for _, j := range lane.Jobs {
		if j.State != JobRunning {
			over = append(over, j)
		}
	}
	t.mu.Lock()
	news := steers > t.steers || len(over) > len(t.over)
	t.steers, t.waiting, t.over = steers, waiting, over
	t.mu.Unlock()
	if news {
		t.ring()
	}
	t.Show(func(v *View) { v.Waiting = waiting })
}

// park asks the agent to stop at the next safe point; a model request is cut
// off at once, for it is sent again with the same bytes. Called by the actor.
func (t *Turn) park() {
	t.mu.Lock()
	t.parking = true
	if t.request != nil {
		t.request(ErrParked)
	}
	t.mu.Unlock()
	t.ring()
}

// flagged looks at what a store reply said came in beside; true means that the
// actor should look. Any goroutine.
func (t *Turn) flagged(f Flags) bool {
	if f.Stop {
		t.cancel(ErrStopped)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return f.Steers != t.steers || f.Waiting != t.waiting
}

// renewed notes that the lease was extended by a call that was first made at
// asked: when its reply comes the lease may be nearly over, or over.
func (t *Turn) renewed(asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if asked.After(t.leased) {
		t.leased = asked
	}
}

func (t *Turn) fresh() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.leased) < t.lease.TTL/2
}

// Guard makes sure, by this machine's own clock, that the lease is good before
// something is started that the next owner would start as well: a model request,
// a tool (F13, F15). It waits while the store is away; a store whose every answer
// takes half a lease lets nothing begin.
func (t *Turn) Guard(ctx context.Context) error {
	for !t.fresh() {
		var asked time.Time
		err := t.h.persist(ctx, "renew", func(ctx context.Context) error {
			asked = time.Now()
			_, err := t.h.Store.Renew(ctx, t.lease)
			return err
		})
		if err != nil {
			return err
		}
		t.renewed(asked)
	}
	return nil
}

// Request gives the context of one model request: the actor may call it back
// to let a follow-up join (ErrJoined) or to park (ErrParked). done must be
// called when the request is over.
func (t *Turn) Request(ctx context.Context) (req context.Context, done func()) {
	req, cancel := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.parking:
		cancel(ErrParked)
	case len(t.joins) > 0 && t.first:
		cancel(ErrJoined)
	}
	t.request = cancel
	return req, func() {
		t.mu.Lock()
		t.request = nil
		t.mu.Unlock()
		cancel(nil)
	}
}

// Join stores the follow-ups that join the turn's user message as fold rows
// and reports whether there were any. A follow-up that was edited or dropped
// meanwhile is looked at again.
func (t *Turn) Join(ctx context.Context) (bool, error) {
	t.mu.Lock()
	joins := t.joins
	t.joins = nil
	may := t.first
	t.folds += len(joins)
	t.mu.Unlock()
	if len(joins) == 0 {
		return false, nil
	}
	if !may {
		t.a.decideAgain(joins)
		return false, nil
	}
	var c Commit
	for _, e := range joins {
		in := decodeInput(e)
		t.h.Agent.Keep(ctx, t.a.key, &in)
		c.Take = append(c.Take, Take{Ticket: e.Ticket, Version: e.Version})
		c.Rows = append(c.Rows, Row{Type: RowFold, Data: mustJSON(UserRow{Inputs: []Input{in}})})
		c.Fates = append(c.Fates, FateSet{Ticket: e.Ticket, State: FateRunning, Turn: t.number})
	}
	c.Phase, c.Drain = t.Phase(), true
	_, err := t.commit(ctx, c)
	if errors.Is(err, ErrStale) {
		t.a.decideAgain(joins)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range joins {
		in := decodeInput(e)
		t.inputs[e.Ticket] = in
		t.speaks(in.From)
		t.asked = e.Msgs[len(e.Msgs)-1]
		t.sign(in, FateRunning, 0, e.Turn != 0)
		t.waited[e.Ticket] = e.Turn != 0
	}
	asked := t.asked
	t.Show(func(v *View) { v.Asked = asked })
	return true, nil
}

// Commit stores a step and answers the steers a drain moved. It waits while
// the store is away, whatever becomes of ctx: a cancelled turn still pairs its
// calls. An error means that the turn may write nothing more.
func (t *Turn) Commit(ctx context.Context, s Step) ([]Row, error) {
	r := Commit{Rows: s.Rows, Phase: s.Phase, Drain: s.Drain, Jobs: s.Jobs, Step: t.step + 1}
	if s.Say != "" {
		r.Outs = t.h.parts(Outgoing{Key: t.a.key, Kind: PartSay, Markdown: s.Say, Silent: true},
			t.number, fmt.Sprintf("t:%d:say:%d", t.number, t.seq))
	}
	said := len(r.Outs) > 0
	for i, f := range s.Files {
		r.Outs = append(r.Outs, t.h.parts(Outgoing{Key: t.a.key, Kind: PartFile, Markdown: f.Caption, Files: []File{f}},
			t.number, fmt.Sprintf("t:%d:file:%d:%d", t.number, t.seq, i))...)
	}
	if len(r.Outs) > 0 {
		t.mu.Lock()
		t.spoke = true
		t.mu.Unlock()
	}
	c, err := t.commit(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(r.Outs) > 0 {
		t.h.Outbox.Nudge(t.a.key, c.Out)
	}
	if said { // in a message of its own: below the calls it would stand twice
		t.ShowText(true, "")
	}
	t.SetPhase(s.Phase)
	return c.Steers, nil
}

// commit stores c under the turn's lease and keeps its own picture of the rows.
func (t *Turn) commit(ctx context.Context, c Commit) (Committed, error) {
	t.ops++
	c.Op = OpID(fmt.Sprintf("c:%d:%d", t.lease.Epoch, t.ops))
	c.Seq = t.seq
	c.TakeOut = len(c.Outs) > 0 && t.h.Outbox.Room(t.a.key)
	var r Committed
	asked := time.Now() // a lost reply is given again, however late
	write := context.WithoutCancel(ctx)
	write, stop := context.WithCancelCause(write)
	defer stop(nil)
	defer context.AfterFunc(t.life, func() { stop(context.Cause(t.life)) })()
	err := t.h.persist(write, "commit", func(ctx context.Context) error {
		var err error
		r, err = t.h.Store.Commit(ctx, t.lease, c)
		return err
	})
	if r.Out != nil {
		r.Out.Paced, r.Out.Asked = true, asked
	} else if c.TakeOut {
		t.h.Outbox.Return(t.a.key)
	}
	if err != nil {
		return r, err
	}
	t.renewed(asked)
	for i, row := range c.Rows {
		row.Seq, row.Turn = t.seq+int64(i)+1, t.number
		t.rows = append(t.rows, row)
		t.step += boolInt(row.Type == RowAssistant)
	}
	t.rows = append(t.rows, r.Steers...)
	t.seq = r.Seq
	if c.Drain {
		t.sent = r.Seq
	}
	t.h.history.put(t.a.key, t.gen, t.rows)
	for _, s := range r.Steers {
		t.attach(s, c.Step)
	}
	if len(c.Jobs) > 0 {
		t.jobs = true
		t.told(c.Jobs)
		t.a.began(c.Jobs, place{t.gen, r.Seq})
	}
	if len(r.Steers) > 0 {
		t.mu.Lock()
		t.steers = max(0, t.steers-len(r.Steers))
		t.waiting = max(0, t.waiting-len(r.Steers))
		t.mu.Unlock()
	}
	if !c.End && t.flagged(r.Flags) {
		t.a.poke(nil)
	}
	return r, nil
}

// told forgets jobs whose end the step told.
func (t *Turn) told(jobs []Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left []Job
	for _, o := range t.over {
		told := false
		for _, j := range jobs {
			told = told || j.ID == o.ID && j.Told
		}
		if !told {
			left = append(left, o)
		}
	}
	t.over = left
}

// attach takes note of a steer that went onto a tool row.
func (t *Turn) attach(s Row, step int) {
	in := decodeRowInput(s)
	t.inputs[s.Tick] = in
	t.speaks(in.From)
	t.waited[s.Tick] = true
	t.attached = append(t.attached, Fate{Ticket: s.Tick, Msgs: in.msgs(), State: FateAttached, Turn: t.number, Step: step, Waited: true})
	call := t.callOf(s.On)
	t.Show(func(v *View) {
		v.Notes = append(v.Notes, NoteView{N: s.N, Step: step, From: CleanLine(in.From.Name, 40), Text: CleanLine(in.text(), 200), Call: call})
	})
}

// callOf is the call id of the tool row with this seq.
func (t *Turn) callOf(seq int64) string {
	if seq < 1 || seq > int64(len(t.rows)) {
		return ""
	}
	return decodeTool(t.rows[seq-1]).Call
}

// Accepted says that a request carrying all rows so far got its first 2xx: the
// steers on them are in.
func (t *Turn) Accepted() {
	if len(t.attached) == 0 {
		return
	}
	sets := make([]FateSet, 0, len(t.attached))
	for _, f := range t.attached {
		sets = append(sets, FateSet{Ticket: f.Ticket, State: FateSteered})
		f.State = FateSteered
		t.h.Outbox.Sign(t.a.key, f)
	}
	t.attached = nil
	if err := t.h.Store.Settle(t.life, t.a.key, sets); err != nil {
		t.h.note(t.life, "settle", err)
	}
	t.Show(func(v *View) {
		for i := range v.Notes {
			v.Notes[i].Sent = true
		}
	})
}

func (t *Turn) sign(in Input, s FateState, step int, waited bool) {
	t.h.Outbox.Sign(t.a.key, Fate{Ticket: in.Ticket, Msgs: in.msgs(), State: s, Turn: t.number, Step: step, Waited: waited})
}
