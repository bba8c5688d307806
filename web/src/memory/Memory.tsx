import { PageHead } from '../app/PageHead'
import { projects } from '../app/server'
import { DeadLetters } from './DeadLetters'
import { Documents } from './Documents'
import { Passes } from './Passes'
import { Records } from './Records'
import { Search } from './Search'

// Memory is what sessions of a project have left for later ones.
export function Memory({ project: named }: { project: string }) {
  const known = projects.value.find((one) => one.name === named) ?? projects.value.find((one) => one.default) ?? projects.value[0]
  const project = named || known?.name
  if (!project) return null
  return (
    <section class="page" aria-label="Memory">
      <PageHead title="Memory" page="memory" project={project} />
      <p class="lead">
        What was said in one session is known in the next: sessions are read for <em>records</em>, records are folded into <em>documents</em>, and
        new sessions are told of them.
      </p>
      {known && !known.memory && <p class="off">It is off in this project. Set <code>enabled = true</code> under <code>[memory]</code> in the manifest, and start the server again.</p>}
      <Search project={project} />
      <Documents project={project} />
      <Records project={project} />
      <Passes project={project} />
      <DeadLetters project={project} />
    </section>
  )
}
