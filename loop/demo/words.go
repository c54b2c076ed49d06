package demo

import (
	"fmt"
	"strings"
)

// What the script says.
const (
	textIntro = "I am a script, not a model: I show how steering feels. I run five steps of about three seconds. Write something while I work, and see it go in."
	textSmall = "I am a script, not a model. Give me any task (for example: write a report) and write on while I work."
)

var stepNames = [steps]string{"read the task", "gather the data", "write the draft", "check the numbers", "polish"}

// answer obeys the notes that went in.
func answer(task string, notes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Done: %s\n\nI ran %d steps and wrote `demo-report.md` in the workspace.", task, steps)
	for _, n := range notes {
		fmt.Fprintf(&b, "\n\nAs you wrote while I worked: **%s**", n)
	}
	if len(notes) == 0 {
		b.WriteString("\n\nYou wrote nothing while I worked. Give me another task, and write on while it runs.")
	}
	b.WriteString("\n\n(I am a script. Set OPENAI_API_KEY to talk to a model.)")
	return b.String()
}
