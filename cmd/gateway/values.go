package main

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// IDs are ids of people, roles or chats, written as numbers or strings.
type IDs []string

// UnmarshalYAML accepts numbers, which YAML readers would else mangle.
func (l *IDs) UnmarshalYAML(decode func(any) error) error {
	var raw []any
	if err := decode(&raw); err != nil {
		return err
	}
	ids := IDs(nil)
	for _, v := range raw {
		switch v := v.(type) {
		case string:
			ids = append(ids, v)
		case int64:
			ids = append(ids, strconv.FormatInt(v, 10))
		case uint64:
			ids = append(ids, strconv.FormatUint(v, 10))
		default:
			return fmt.Errorf("an id is a number or a string, not %v", v)
		}
	}
	*l = ids
	return nil
}

// numbers gives ids that are numbers; others are refused when the settings are
// validated.
func (l IDs) numbers() []int64 {
	var out []int64
	for _, id := range l {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// A Duration is written as 5s, 20m or 1h.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(decode func(any) error) error {
	var s string
	if err := decode(&s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no duration; write for example 5s, 20m or 1h", s)
	}
	*d = Duration(v)
	return nil
}

// A Size is a number of bytes, written as 512KiB, 64MiB or 1GiB.
type Size int64

// UnmarshalYAML reads a size.
func (z *Size) UnmarshalYAML(decode func(any) error) error {
	var s string
	if err := decode(&s); err != nil {
		return err
	}
	unit := int64(1)
	num := s
	for suffix, u := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			num, unit = strings.TrimSpace(n), u
		}
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is no size; write for example 64MiB", s)
	}
	*z = Size(n * unit)
	return nil
}

// loopback reports whether only this machine can reach addr.
func loopback(addr string) (bool, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("%q is no address; write host:port, for example 127.0.0.1:8080", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, fmt.Errorf("%q has no valid port; write host:port, for example 127.0.0.1:8080", addr)
	}
	if host == "localhost" {
		return true, nil
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback(), nil
}

// A Secret never prints itself.
type Secret string

const hidden = "***"

// String hides the secret.
func (Secret) String() string { return hidden }

// GoString hides the secret.
func (Secret) GoString() string { return hidden }

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON hides the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MarshalYAML hides the secret.
func (Secret) MarshalYAML() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
