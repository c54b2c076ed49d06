package telegram

import "context"

// Username gives the bot's name, asked of Telegram once. Any goroutine.
func (a *Adapter) Username(ctx context.Context) (string, error) { return a.username(ctx) }
