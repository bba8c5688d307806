import { render } from 'preact'
import { App } from './app/App'
import './style/base.css'
import './style/layout.css'
import './style/chat.css'
import './style/tool.css'
import './style/markdown.css'
import './style/pages.css'

render(<App />, document.getElementById('page')!)
