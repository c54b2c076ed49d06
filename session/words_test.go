package session

import (
	"testing"
	"unicode/utf8"
)

// What people are told of budgets is at most 120 characters, whatever ran out.
func TestWordsOfBudgets(t *testing.T) {
	texts := []string{textMore, textMoreBefore, textMoreAdmin, textBtwSpent, textStalled(Reserved{Refused: string(scopeRate)})}
	for _, s := range []rune{scopeTurn, scopeChat, scopePerson, scopeDay} {
		if budgetWords[s] == "" {
			t.Errorf("scope %c has no words", s)
		}
		texts = append(texts, textMost(s), textUsedUp(s), textUsedUpThere(s, "telegram"), textUsedUpThere(s, "web"))
	}
	for _, text := range texts {
		if n := utf8.RuneCountInString(text); n > 120 {
			t.Errorf("%d characters: %s", n, text)
		}
	}
}
