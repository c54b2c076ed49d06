#!lua
-- claim: takes over a lane whose lease has run out, with a new epoch; the holder gets its own lease again (F14).
-- KEYS, ARGV 1-4: prelude. ARGV: nonce ttl
-- Reply: {OK, epoch, lane}; GONE (no such lane); HELD; NEWER
local nonce, ttl = str(), num()

if not exists then
  if not SEAT then return {'GONE'} end
  make()
end
if newer() then return {'NEWER'} end
if leased() then
  if s('non') ~= nonce then return {'HELD'} end
else
  set('ep', n('ep') + 1)
  set('non', nonce)
  if n('turn') ~= 0 and n('rel') == 0 then
    set('att', n('att') + 1)
    count('recovered')
  end
  set('rel', 0)
end
lease(ttl)
save()
return {'OK', n('ep'), view()}
