import type { Session } from 'loadline'
import { sessionAddress } from '../app/route'
import { ago } from '../app/words'
import { remove, titleOf } from './list'

// SessionRow is a session in the list: its title, whether it runs, what waits in it.
export function SessionRow({ session, open, withProject }: { session: Session; open: boolean; withProject: boolean }) {
  const running = session.state === 'running'
  const title = titleOf(session).slice(0, 200)
  return (
    <li class={open ? 'session open' : 'session'}>
      <a href={sessionAddress(session.id)} aria-current={open ? 'page' : undefined}>
        <span class="session-title" dir="auto">{title}</span>
        <span class="session-facts">
          {running && <span class="running"><span class="dot" aria-hidden="true" />running</span>}
          {session.queued > 0 && <span>{session.queued} waiting</span>}
          {withProject && <span>{session.project}</span>}
          <time dateTime={session.updated_at}>{ago(session.updated_at)}</time>
        </span>
      </a>
      <button type="button" class="quiet delete" aria-label={`Delete ${title.slice(0, 60)}`} title="Delete" onClick={() => remove(session)}>
        <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5" /></svg>
      </button>
    </li>
  )
}
