package loop

import (
	"time"

	"coxswain/session"
)

// What people see of calls. Arguments and output are outside text: cleaned of
// the key and of control characters before they are shown (I8).

func (r *runner) showStarted(c session.Call, began time.Time) {
	args, _ := r.clean.Sanitize(c.Args)
	step := r.requests
	r.t.Show(func(v *session.View) {
		v.Tools = append(v.Tools, session.ToolView{
			Call: c.ID, Name: session.CleanLine(c.Name, 40), Args: session.CleanLine(args, 160),
			Step: step, State: session.ToolRunning, Began: began,
		})
	})
}

func (r *runner) showSkipped(c session.Call) {
	args, _ := r.clean.Sanitize(c.Args)
	step := r.requests
	r.t.Show(func(v *session.View) {
		v.Tools = append(v.Tools, session.ToolView{
			Call: c.ID, Name: session.CleanLine(c.Name, 40), Args: session.CleanLine(args, 160),
			Step: step, State: session.ToolSkipped, Failed: true,
		})
	})
}

func (r *runner) showTail(c session.Call, tail string) {
	tail, _ = r.clean.Sanitize(tail)
	r.change(c, func(t *session.ToolView) { t.Tail = tail })
}

func (r *runner) showEnded(c session.Call, took time.Duration, failed bool) {
	r.change(c, func(t *session.ToolView) {
		t.State, t.Took, t.Failed = session.ToolDone, took.Seconds(), failed
	})
}

func (r *runner) showJob(c session.Call) {
	r.change(c, func(t *session.ToolView) { t.State = session.ToolJob })
}

func (r *runner) change(c session.Call, f func(*session.ToolView)) {
	r.t.Show(func(v *session.View) {
		for i := range v.Tools {
			if v.Tools[i].Call == c.ID {
				// Views that were handed out share the array: change a copy.
				tools := append([]session.ToolView(nil), v.Tools...)
				f(&tools[i])
				v.Tools = tools
			}
		}
	})
}
