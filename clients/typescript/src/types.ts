import type { components } from './api.js'

type Schemas = components['schemas']
export type Session = Schemas['Session']
export type Turn = Schemas['Turn']
export type Item = Schemas['Item']
export type Event = Schemas['Event']
export type Usage = Schemas['Usage']
export type ToolResult = Schemas['ToolResult']
export type Tool = Schemas['Tool']
export type Project = Schemas['Project']
export type Mode = Turn['mode']
