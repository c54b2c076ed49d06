//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"coxswain/telegramtest"
)

// What may become of a text other than that it is run.
type may uint8

const (
	mustRun may = iota
	mayDrop     // its author took it back
	mayEdit     // it, or what it was edited to
)

// A word stands for one text that was said.
type word struct {
	chat int
	text string
	may  may
	edit string // mayEdit: the word of the other version
	at   time.Time
}

// A person writes in a private chat. Its fields belong to its goroutine, but for
// said.
type person struct {
	f    *fleet
	n    int // from 1
	id   int64
	mode string
	rng  *rand.Rand
	next int
	open []string // words that no request was seen to carry

	mu   sync.Mutex
	said map[string]word
	ran  map[string]bool // tickets that were held, and run by a press
}

func newPerson(f *fleet, i int) *person {
	return &person{f: f, n: i + 1, id: firstChat + int64(i), mode: []string{"steer", "queue", "interrupt"}[i%3],
		rng: rand.New(rand.NewPCG(f.seed, uint64(i+1))), said: map[string]word{}, ran: map[string]bool{}}
}

// acts are what people do, each as often as it is listed.
var acts = strings.Fields(`task task task task note note note note steer steer interrupt queue join
	hi long edit own cancel cancel press stop new whoami link`)

// provokes are the acts that bring a gateway to a failpoint which is rarely
// passed else. Others come by themselves.
var provokes = map[string]string{
	"stop": "stop", "reset": "new", "amend.edit": "edit", "amend.drop": "cancel", "amend.set": "press", "post": "whoami",
	"outtake": "whoami", "commit.join": "join", "putdoc": "link", "renew": "long", "commit.drain": "long",
}

// live writes until ctx ends.
func (p *person) live(ctx context.Context) {
	p.say("/busy " + p.mode)
	for n := 0; ; n++ {
		pause := time.Duration(200+p.rng.IntN(2200)) * time.Millisecond
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if p.waiting() > 5 {
			continue
		}
		act := acts[p.rng.IntN(len(acts))]
		if n%20 == 19 {
			act = "new" // what is said to the model stays short
		} else if wanted := p.f.wanted(); len(wanted) > 0 && p.rng.IntN(3) == 0 {
			act = wanted[p.rng.IntN(len(wanted))]
		}
		p.do(ctx, act)
	}
}

// wanted are acts that bring a gateway to the failpoint it waits for.
func (f *fleet) wanted() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for point := range f.armed {
		if act := provokes[point]; act != "" {
			list = append(list, act)
		}
	}
	return list
}

// waiting counts words that are neither seen nor old: what was held, dropped or
// refused never comes.
func (p *person) waiting() int {
	keep := p.open[:0]
	for _, w := range p.open {
		if !p.f.model.saw(w) && time.Since(p.word(w).at) < 15*time.Second {
			keep = append(keep, w)
		}
	}
	p.open = keep
	return len(keep)
}

func (p *person) word(w string) word {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said[w]
}

// text makes a text that is said once.
func (p *person) text(kind string, may may) (text, key string) {
	p.next++
	key = fmt.Sprintf("c%dn%d", p.n, p.next)
	text = kind + " " + key + "."
	p.mu.Lock()
	p.said[key] = word{chat: p.n, text: text, may: may, at: time.Now()}
	p.mu.Unlock()
	p.open = append(p.open, key)
	return text, key
}

func (p *person) say(text string) int {
	p.f.log.note(p.n, "says: %s", text)
	return p.f.tg.Say(p.id, p.id, text)
}

func (p *person) do(ctx context.Context, act string) {
	short := func() {
		select {
		case <-time.After(time.Duration(p.rng.IntN(150)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	switch act {
	case "task", "note", "hi", "long":
		text, _ := p.text(act, mustRun)
		p.say(text)
	case "steer", "queue", "interrupt":
		text, _ := p.text("note", mustRun)
		p.say("/" + act + " " + text)
	case "join":
		text, _ := p.text("task", mustRun)
		p.say(text)
		short()
		text, _ = p.text("joined", mustRun)
		p.say(text)
	case "edit", "own": // of what waits, or of what may be running
		text, old := p.text("later", mustRun)
		cmd := ""
		if act == "edit" {
			cmd = "/queue "
		}
		id := p.say(cmd + text)
		short()
		text, key := p.text("changed", mustRun)
		p.mu.Lock()
		a, b := p.said[old], p.said[key]
		a.may, a.edit, b.may, b.edit = mayEdit, key, mayEdit, old
		p.said[old], p.said[key] = a, b
		p.mu.Unlock()
		p.f.log.note(p.n, "edits %s to: %s", old, text)
		p.f.tg.Edit(p.id, p.id, id, text)
	case "cancel":
		text, _ := p.text("taken back", mayDrop)
		id := p.say("/queue " + text)
		if p.rng.IntN(2) == 0 {
			short()
		}
		p.f.log.note(p.n, "takes it back")
		p.f.tg.Say(p.id, p.id, "/cancel", telegramtest.Fields{"reply_to_message": map[string]any{
			"message_id": id, "date": 1, "chat": map[string]any{"id": p.id, "type": "private"},
			"from": map[string]any{"id": p.id, "first_name": "Person"}, "text": "x",
		}})
	case "press":
		text, _ := p.text("pressed", mustRun)
		p.say("/queue " + text)
		p.press(ctx, p.say("/pending"))
	case "stop", "new", "whoami":
		p.say("/" + act)
	case "link":
		if p.rng.IntN(2) == 0 {
			p.say("/link")
			return
		}
		id := stranger + rand.Int64N(1_000_000)
		p.f.tg.Say(id, id, "let me in")
	default:
		panic("no such act: " + act)
	}
}

// press presses a button of the list that the answer to message id is.
func (p *person) press(ctx context.Context, id int) {
	late, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	var msg int
	var data string
	err := p.f.tg.Wait(late, func() bool {
		for _, m := range p.f.tg.Messages(p.id) {
			for _, row := range m.Keyboard {
				for _, b := range row {
					verb, _, _ := strings.Cut(b.Data, ":")
					if m.ID > id && (verb == "queue" || verb == "now" || verb == "run") {
						msg, data = m.ID, b.Data
					}
				}
			}
		}
		return data != ""
	})
	if err != nil {
		return // its gateway died, or nothing waits any more
	}
	p.f.log.note(p.n, "presses %s", data)
	if verb, ticket, _ := strings.Cut(data, ":"); verb == "run" {
		p.mu.Lock()
		p.ran[ticket] = true
		p.mu.Unlock()
	}
	p.f.tg.Press(p.id, msg, p.id, data)
}
