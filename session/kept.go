package session

// These are changed in the store by processes of two versions at once, or are
// carried from one stored thing into another: what they do not know they keep.

// UnmarshalJSON implements json.Unmarshaler.
func (v *grants) UnmarshalJSON(b []byte) error {
	type plain grants
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v grants) MarshalJSON() ([]byte, error) {
	type plain grants
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Pair) UnmarshalJSON(b []byte) error {
	type plain Pair
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v Pair) MarshalJSON() ([]byte, error) {
	type plain Pair
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *links) UnmarshalJSON(b []byte) error {
	type plain links
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v links) MarshalJSON() ([]byte, error) {
	type plain links
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *account) UnmarshalJSON(b []byte) error {
	type plain account
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v account) MarshalJSON() ([]byte, error) {
	type plain account
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *linkCode) UnmarshalJSON(b []byte) error {
	type plain linkCode
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v linkCode) MarshalJSON() ([]byte, error) {
	type plain linkCode
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *linked) UnmarshalJSON(b []byte) error {
	type plain linked
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v linked) MarshalJSON() ([]byte, error) {
	type plain linked
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *linkTry) UnmarshalJSON(b []byte) error {
	type plain linkTry
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v linkTry) MarshalJSON() ([]byte, error) {
	type plain linkTry
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *routes) UnmarshalJSON(b []byte) error {
	type plain routes
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v *routes) MarshalJSON() ([]byte, error) {
	type plain routes
	return v.rest.Encode((*plain)(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *chatRoute) UnmarshalJSON(b []byte) error {
	type plain chatRoute
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v chatRoute) MarshalJSON() ([]byte, error) {
	type plain chatRoute
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *past) UnmarshalJSON(b []byte) error {
	type plain past
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v past) MarshalJSON() ([]byte, error) {
	type plain past
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *observed) UnmarshalJSON(b []byte) error {
	type plain observed
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v observed) MarshalJSON() ([]byte, error) {
	type plain observed
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *overheard) UnmarshalJSON(b []byte) error {
	type plain overheard
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v overheard) MarshalJSON() ([]byte, error) {
	type plain overheard
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Person) UnmarshalJSON(b []byte) error {
	type plain Person
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v Person) MarshalJSON() ([]byte, error) {
	type plain Person
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Attachment) UnmarshalJSON(b []byte) error {
	type plain Attachment
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v Attachment) MarshalJSON() ([]byte, error) {
	type plain Attachment
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Input) UnmarshalJSON(b []byte) error {
	type plain Input
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v Input) MarshalJSON() ([]byte, error) {
	type plain Input
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *InputPart) UnmarshalJSON(b []byte) error {
	type plain InputPart
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v InputPart) MarshalJSON() ([]byte, error) {
	type plain InputPart
	return v.rest.Encode(plain(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Prefs) UnmarshalJSON(b []byte) error {
	type plain Prefs
	return v.rest.Decode(b, (*plain)(v))
}

// MarshalJSON implements json.Marshaler.
func (v Prefs) MarshalJSON() ([]byte, error) {
	type plain Prefs
	return v.rest.Encode(plain(v))
}
