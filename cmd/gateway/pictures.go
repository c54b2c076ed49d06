package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coxswain/session"
)

// pictureMost is the largest picture a model is shown: a third more goes over
// the wire, with every request of the conversation.
const pictureMost = 4 << 20

// pictureTypes are what the endpoints we know take.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

var errNoPicture = errors.New("not a picture that models take, or over 4 MiB")

// pictures is where copies of a session's pictures are kept: beside the
// workspaces, where no tool can change them.
func (w *workspaces) pictures(key session.Key) string {
	return filepath.Join(w.root, ".pictures", dirName(key))
}

// Keep implements loop.ImageStore. A copy is named by its content, so keeping
// it again changes nothing.
func (w *workspaces) Keep(ctx context.Context, key session.Key, path string) (name, mime string, err error) {
	f, size, err := w.open(ctx, key, path)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	if size > pictureMost {
		return "", "", errNoPicture
	}
	data, err := io.ReadAll(io.LimitReader(f, pictureMost+1))
	if err != nil {
		return "", "", fmt.Errorf("read picture: %w", err)
	}
	mime = http.DetectContentType(data)
	if len(data) > pictureMost || !slices.Contains(pictureTypes, mime) {
		return "", "", errNoPicture
	}
	sum := sha256.Sum256(data)
	name = hex.EncodeToString(sum[:16])
	to := w.pictures(key)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", "", fmt.Errorf("keep picture: %w", err)
	}
	tmp, err := os.CreateTemp(to, "new-*")
	if err != nil {
		return "", "", fmt.Errorf("keep picture: %w", err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(to, name))
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // it is of no use
		return "", "", fmt.Errorf("keep picture: %w", err)
	}
	return name, mime, nil
}

// Load implements loop.ImageStore.
func (w *workspaces) Load(key session.Key, name string) ([]byte, error) {
	if _, err := hex.DecodeString(name); err != nil || len(name) != 32 {
		return nil, fmt.Errorf("%q names no picture", name)
	}
	return os.ReadFile(filepath.Join(w.pictures(key), name))
}

// seers are the hosts whose models are known to take pictures.
var seers = []string{"api.openai.com", "openrouter.ai", "generativelanguage.googleapis.com"}

// seesImages reports whether pictures go to this model. An endpoint that does
// not take them fails every turn of a conversation that has one, so auto is
// careful.
func (m ModelConf) seesImages() bool {
	switch m.Images {
	case "on":
		return true
	case "off":
		return false
	}
	u, err := url.Parse(m.BaseURL)
	return err == nil && slices.Contains(seers, strings.ToLower(u.Hostname()))
}
