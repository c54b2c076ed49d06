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

// beside answers a question beside the task with all that the script knows.
func beside(task string, reached int) string {
	if reached >= steps {
		return fmt.Sprintf("I am a script, so all I can say is: “%s” is done, all %d steps.", task, steps)
	}
	return fmt.Sprintf("I am a script, so all I can say is: I am at step %d of %d of “%s”, “%s”. It goes on untouched.", reached, steps, task, stepNames[reached-1])
}

// answer obeys the notes that went in: two lines, the second says what was
// changed for them.
func answer(task string, notes []string) string {
	if len(notes) > 0 {
		return fmt.Sprintf("Done: %s. The report is `demo-report.md`, two lines long.\nChanged as you asked while I worked: **%s**", task, strings.Join(notes, "; "))
	}
	return fmt.Sprintf("Done: %s. The report is `demo-report.md`, %d lines.\nNo note came while I worked: give me another task, and write on. (I am a script; set OPENAI_API_KEY for a model.)", task, steps+1)
}
