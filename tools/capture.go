package tools

import (
	"fmt"
	"sync"
)

// captureHalf bounds what a call keeps of its output in memory: the first and the last half
// megabyte. More than a megabyte of text helps nobody, and `yes` writes gigabytes.
const captureHalf = 512 << 10

// capture collects a process's output. Write is called by the reading goroutine, the rest by
// the call's; safe for both at once.
type capture struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // up to twice captureHalf, so that it is moved seldom
	total int64
	fresh bool // something came since last was asked
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	c.fresh = c.fresh || n > 0
	if room := captureHalf - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > captureHalf {
		p = p[len(p)-captureHalf:]
		c.tail = c.tail[:0]
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 2*captureHalf {
		c.tail = c.tail[:copy(c.tail, c.tail[len(c.tail)-captureHalf:])]
	}
	return n, nil
}

// text returns all that was kept, with a line that says how much was not, and that number.
func (c *capture) text() (string, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail[max(len(c.tail)-captureHalf, 0):]
	lost := c.total - int64(len(c.head)) - int64(len(tail))
	if lost == 0 {
		return string(c.head) + string(tail), 0
	}
	return string(c.head) + fmt.Sprintf(wordNotKept, lost) + string(tail), lost
}

// last returns the cleaned end of the output, and whether any came since the last call.
func (c *capture) last() (string, bool) {
	// Four times the cleaned size: escape sequences and progress bars shrink a lot.
	const span = 4 * maxTail
	c.mu.Lock()
	fresh := c.fresh
	c.fresh = false
	if !fresh {
		c.mu.Unlock()
		return "", false
	}
	var raw []byte
	if need := span - len(c.tail); need > 0 {
		raw = append(raw, c.head[max(len(c.head)-need, 0):]...)
	}
	raw = append(raw, c.tail[max(len(c.tail)-span, 0):]...)
	whole := int64(len(raw)) == c.total
	c.mu.Unlock()
	return lastText(raw, whole), true
}
