import { notices, type Notice } from './notice'

export function Notices() {
  return (
    <div class="notices" role="status">
      {notices.value.map((notice) => <OneNotice key={notice.id} notice={notice} />)}
    </div>
  )
}

function OneNotice({ notice: { id, text, action } }: { notice: Notice }) {
  const act = () => {
    action?.run()
    notices.value = notices.value.filter((notice) => notice.id !== id)
  }
  return (
    <div class="notice">
      <span>{text}</span>
      {action && <button type="button" class="quiet" onClick={act}>{action.label}</button>}
    </div>
  )
}
