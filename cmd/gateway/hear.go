package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
)

// hear puts speech into words at an OpenAI-compatible endpoint; nil when none
// is configured: voice messages then stay files.
func (c *Config) hear() func(ctx context.Context, name string, audio io.Reader) (string, error) {
	t := c.Transcription
	if t.Model == "" {
		return nil
	}
	conf := goopenai.DefaultConfig(string(t.APIKey))
	conf.BaseURL = t.BaseURL
	conf.HTTPClient = &http.Client{Timeout: time.Minute}
	client := goopenai.NewClientWithConfig(conf)
	return func(ctx context.Context, name string, audio io.Reader) (string, error) {
		r, err := client.CreateTranscription(ctx, goopenai.AudioRequest{Model: t.Model, FilePath: name, Reader: audio})
		if err != nil {
			return "", fmt.Errorf("transcribe: %w", err)
		}
		return r.Text, nil
	}
}
