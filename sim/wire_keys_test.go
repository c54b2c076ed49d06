package sim

import (
	"fmt"
	"slices"

	"coxswain/telegramtest"
)

// press presses the newest button with this label.
func (w *wireWorld) press(label string) {
	msgs := w.tg.Messages(ann)
	for _, m := range slices.Backward(msgs) {
		for _, b := range slices.Concat(m.Keyboard...) {
			if b.Text == label {
				w.tg.Press(ann, m.ID, ann, b.Data)
				return
			}
		}
	}
	w.t.Fatalf("no message has the button %q", label)
}

// keys are the buttons under a sent message.
func keys(c telegramtest.Call) (all string) {
	markup, _ := c.Params["reply_markup"].(map[string]any)
	rows, _ := markup["inline_keyboard"].([]any)
	for _, row := range rows {
		buttons, _ := row.([]any)
		for _, b := range buttons {
			if b, ok := b.(map[string]any); ok {
				all += fmt.Sprintf(" [%v]", b["text"])
			}
		}
	}
	return all
}
