package redis

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"coxswain/session"
)

// Rows lie packed: most of what Redis keeps in memory is what was said (STORE.md
// §2.10). Each row's data is a zstd frame of its own, so an append stays O(1),
// with a dictionary that knows how rows look (their JSON, the head, common words):
// a row is too short to learn that from itself.
//
// The first byte says how data are stored: asPacked is followed by a frame without
// its magic number, asIs by the data. Anything else is the data themselves; so
// are all rows of a store of an earlier schema, and steers, which a script moves
// from the slot to the rows without reading them.
const (
	asIs     = 0
	asPacked = 1
)

// The magic number of a zstd frame (RFC 8878, 3.1.1), which is not stored.
const zstdMagic = "\x28\xb5\x2f\xfd"

// rowMost bounds what a frame may grow to: far above any row, far below what
// would hurt.
const rowMost = 64 << 20

// dict1 is the dictionary of frames that name 1. A dictionary is never changed,
// or what was packed with it cannot be read: a better one gets a number of its own
// (cmd/gateway, tag train), a line in newUnpacker, and those before stay.
//
//go:embed dict/1.zstd
var dict1 []byte

var (
	packer   = sync.OnceValues(newPacker)
	unpacker = sync.OnceValues(newUnpacker)
)

// newPacker packs with the newest dictionary. The fastest level packs rows best:
// deeper ones count on more to come. The name of the dictionary is in the frame.
func newPacker() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderDict(dict1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
}

func newUnpacker() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderDicts(dict1), zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(rowMost))
}

// packRow is a row's data as they are stored.
func (s *Store) packRow(r session.Row) []byte {
	if !s.packs || r.Type == session.RowSteer || len(r.Data) == 0 {
		return r.Data
	}
	z, err := packer()
	if err != nil {
		panic("redis: the dictionary of rows: " + err.Error()) // it is in the binary, and tests read it
	}
	frame := z.EncodeAll(r.Data, make([]byte, 0, len(r.Data)+32))
	switch at := len(zstdMagic) - 1; {
	case len(frame)-at < len(r.Data):
		frame[at] = asPacked
		return frame[at:]
	case r.Data[0] <= asPacked:
		return append([]byte{asIs}, r.Data...)
	}
	return r.Data
}

// unpackRow gives a row its data back.
func (s *Store) unpackRow(r *session.Row) error {
	if !s.packs || r.Type == session.RowSteer || len(r.Data) == 0 {
		return nil
	}
	switch r.Data[0] {
	case asIs:
		r.Data = r.Data[1:]
	case asPacked:
		z, err := unpacker()
		if err == nil {
			r.Data, err = z.DecodeAll(append([]byte(zstdMagic), r.Data[1:]...), nil)
		}
		if err != nil {
			return fmt.Errorf(wordsPacked+": %w", r.Seq, err)
		}
	}
	return nil
}
