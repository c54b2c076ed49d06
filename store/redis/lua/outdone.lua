#!lua flags=allow-oom
-- outdone: ends the attempt that nonce holds, or renews it; any other call changes nothing. Allowed when memory is full: it
-- frees some.
-- KEYS, ARGV 1-4: prelude. ARGV: nonce id state (sent | dead | planned | unknown | sending) wait keeper
--   With an empty id: gives up what is kept for nonce.
-- Reply: {OK}
local nonce, id, state, wait, keeper = str(), str(), str(), num(), str()

local p, os = call('LINDEX', key('o'), 0), s('os')
if not p or s('on') ~= nonce then return {'OK'} end
if id == '' then
  if os ~= 'planned' then return {'OK'} end
  set('on', '')
  head('planned', now, 0)
elseif unpk(p)[1] ~= id or os ~= 'sending' then
  return {'OK'}
elseif state == 'sending' then
  set('ot', now)
  if string.sub(s('or'), 1, 7) == 'sending' then set('or', 'sending ' .. now) end
  head('sending', now, 0)
elseif state == 'planned' or state == 'unknown' then
  set('on', '')
  if state == 'planned' then set('ot', now) else count('out_unknown') end
  head(state, n('ot'), wait > 0 and now + wait or 0)
else
  call('LPOP', key('o'))
  count('out_' .. state)
  set('oa', 0)
  local kept = keeper ~= '' and wait > 0 and call('EXISTS', key('o')) == 1
  set('on', kept and keeper or '')
  head('planned', now, kept and now + wait or 0)
  if call('EXISTS', key('o')) == 0 then call('ZREM', P .. 'obx', LANE) end
end
save()
return {'OK'}
