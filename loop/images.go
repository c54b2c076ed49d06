package loop

import (
	"context"
	"slices"

	"coxswain/session"
)

// An ImageStore keeps copies of pictures, named by their content. Its methods
// may be called from any goroutine.
type ImageStore interface {
	// Keep copies a file of the session's workspace. It refuses what is no
	// picture that models take, or too large for one.
	Keep(ctx context.Context, key session.Key, path string) (name, mime string, err error)
	// Load reads a copy.
	Load(key session.Key, name string) ([]byte, error)
}

// imagesMost is how many pictures of one input a model is shown; others are
// files that are named.
const imagesMost = 8

// Keep implements session.Agent.
func (l *Loop) Keep(ctx context.Context, key session.Key, in *session.Input) {
	if l.Images == nil || !l.of(key).Images {
		return
	}
	n := 0
	for i := range in.Parts {
		part := &in.Parts[i]
		if !slices.ContainsFunc(part.Attachments, func(a session.Attachment) bool { return a.Path != "" }) {
			continue
		}
		part.Attachments = slices.Clone(part.Attachments)
		for j := range part.Attachments {
			a := &part.Attachments[j]
			if a.Path == "" || n >= imagesMost {
				continue
			}
			name, mime, err := l.Images.Keep(ctx, key, a.Path)
			if err != nil {
				continue // it is named all the same
			}
			a.Image, a.MIME = name, mime
			n++
		}
	}
}

// pictures are those of a user row that this epoch's model sees. A copy that is
// gone is left out: the text still names the file.
func (l *Loop) pictures(tr *transcript, u session.UserRow) []Image {
	if !tr.head.Images || l.Images == nil {
		return nil
	}
	var all []Image
	for _, in := range slices.Concat(u.Again, u.AgainNotes, u.Inputs) {
		for _, p := range in.Parts {
			for _, a := range p.Attachments {
				if a.Image == "" {
					continue
				}
				data, err := l.Images.Load(tr.key, a.Image)
				if err != nil {
					continue
				}
				all = append(all, Image{MIME: a.MIME, Data: data})
			}
		}
	}
	return all
}
